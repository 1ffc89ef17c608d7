"""Everyday sentences from templates: what people say of themselves, and ask.

Books and documentation hold little of that. A template's slots are filled from lists in
templates.toml and from WordNet's words by class, at random but the same each time.
"""

import random
import re
import tomllib
from pathlib import Path

_FILE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
STATEMENTS = _FILE["statements"]
QUESTIONS = _FILE["questions"]
SLOTS = _FILE["slots"]
INFINITIVES = _FILE["infinitives"]

SLOT = re.compile(r"\{([^{}]+)\}")
MY = re.compile(r"\bmy\b")


def gerund(verb):
    """`run up` becomes `running up`."""
    first, *rest = verb.split(" ")
    if first.endswith("ie"):
        first = first[:-2] + "ying"
    elif first.endswith("e") and not first.endswith("ee") and len(first) > 2:
        first = first[:-1] + "ing"
    elif re.fullmatch(r"[^aeiou]*[aeiou][bdgmnprt]", first):
        first += first[-1] + "ing"
    else:
        first += "ing"
    return " ".join([first, *rest])


class Templates:
    """Fills templates. `words` are WordNet's by class: `food`, `animal`, `verb` and so on."""

    def __init__(self, words, seed=1):
        self.random = random.Random(seed)
        self.words = {**words, "sport": SLOTS["sport"]}

    def statement(self):
        """What someone says, one time in four after an interjection."""
        text = self._fill(self.random.choice(STATEMENTS))
        if self.random.random() < 0.25:
            text = self._fill(self.random.choice(SLOTS["pre"])) + " " + text
        return text

    def question(self):
        """What someone asks."""
        return self._fill(self.random.choice(QUESTIONS))

    def _fill(self, text):
        # Values have slots themselves.
        for _ in range(3):
            text = SLOT.sub(lambda match: self._value(match[1]), text)
        return text

    def _value(self, slot):
        choose = self.random.choice
        if slot.startswith("WN:"):
            word = choose(self.words[slot[3:].rstrip("2")])
            return word.capitalize() if slot.endswith("2") else word
        match slot:
            case "event3":
                owner = choose(["his", "her", "their"])
                return MY.sub(owner, choose(SLOTS["event"])).replace("I'm", "they're")
            case "ev_base":
                owner = choose(["his", "her"])
                verb, rest = MY.sub(owner, choose(SLOTS["event"])).split(" ", 1)
                return INFINITIVES.get(verb, verb) + " " + rest
            case "goalq":
                owner = choose(["his", "her"])
                return MY.sub(owner, choose(SLOTS["goal"]))
            case "when2" | "act2":
                return choose(SLOTS[slot[:-1]]).capitalize()
            case "topic2":
                return choose(SLOTS["genre"])
            case "dom":
                return str(self.random.randint(1, 31))
            case "hour":
                return f"{self.random.randint(1, 12)} {choose(['am', 'pm'])}"
            case "poss":
                return choose(["his", "her", "their"])
            case "verb":
                return choose(self.words["verb"])
            case "verbing":
                return gerund(choose(self.words["verb"]))
            case "verbing2":
                return gerund(choose(self.words["verb"])).capitalize()
            case "adjw" | "advw":
                return choose(self.words[slot[:-1]])
        return choose(SLOTS[slot])
