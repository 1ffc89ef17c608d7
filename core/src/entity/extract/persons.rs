//! What shows that a capitalized run is a person and no city, product or heading: the words beside it.

use super::names::{Case, Word};

/// Titles: `Dr. Silva`. They are part of the name.
pub(super) const TITLES: &[&str] = &[
    "Aunt", "Dr", "Frau", "Herr", "Madame", "Miss", "Monsieur", "Mr", "Mrs", "Ms", "Mx", "Prof",
    "Professor", "Sir", "Sra", "Señor", "Señora", "Uncle",
];

/// What persons are for each other: `my sister Rosa`, `Rosa's mother`.
const RELATIONS: &[&str] = &[
    "aunt", "boyfriend", "brother", "brother-in-law", "classmate", "co-founder", "colleague",
    "cousin", "coworker", "dad", "daughter", "daughter-in-law", "father", "father-in-law",
    "fiancé", "fiancée", "flatmate", "friend", "girlfriend", "grandad", "grandfather", "grandma",
    "grandmother", "grandpa", "granny", "husband", "mom", "mother", "mother-in-law", "mum",
    "neighbor", "neighbour", "nephew", "niece", "roommate", "sister", "sister-in-law", "son",
    "son-in-law", "stepfather", "stepmother", "uncle", "wife",
];

/// What persons are for others, and for clubs and companies: `our vet, Dr Mensah`.
const PROFESSIONS: &[&str] = &[
    "accountant", "assistant", "babysitter", "boss", "caretaker", "coach", "dentist", "doctor",
    "intern", "landlady", "landlord", "lawyer", "manager", "mentor", "nanny", "nurse", "physio",
    "plumber", "supervisor", "teacher", "therapist", "tutor", "vet",
];

/// What else is said to be a person's: `Rosa's birthday`.
const PERSONAL_EVENTS: &[&str] = &["birthday", "funeral", "surname", "wedding"];

const POSSESSIVES: &[&str] = &["her", "his", "my", "our", "their", "your"];

/// Verbs and nouns whose object is a person: `ask Rosa`.
const VERBS_BEFORE_NAMES: &[&str] = &[
    "ask", "asked", "attention", "cc", "cc'd", "invite", "invited", "married", "marry", "meet",
    "met", "ping", "pinged", "remind", "reminded", "tell", "telling", "text", "texted", "thank",
    "thanked", "told",
];

/// The same in two words: `spoke with Rosa`, `approved by Rosa`.
const PHRASES_BEFORE_NAMES: &[[&str; 2]] = &[
    ["approved", "by"],
    ["assigned", "to"],
    ["breakfast", "with"],
    ["chat", "with"],
    ["chatted", "with"],
    ["coffee", "with"],
    ["dinner", "with"],
    ["discussed", "with"],
    ["lunch", "with"],
    ["reported", "by"],
    ["request", "by"],
    ["review", "by"],
    ["reviewed", "by"],
    ["signed", "by"],
    ["speak", "to"],
    ["speak", "with"],
    ["spoke", "to"],
    ["spoke", "with"],
    ["spoken", "to"],
    ["spoken", "with"],
    ["talk", "to"],
    ["talk", "with"],
    ["talked", "to"],
    ["talked", "with"],
    ["written", "by"],
];

/// How people present themselves: `my name is Rosa`, `call me Rosa`.
const INTRODUCTIONS: &[[&str; 2]] =
    &[["call", "me"], ["i", "am"], ["my", "name's"], ["name", "is"], ["", "i'm"]];

/// Greetings: `Hi Rosa,`.
const GREETINGS: &[&str] = &[
    "bye", "cheers", "congrats", "congratulations", "dear", "hello", "hey", "hi", "sincerely",
    "thanks",
];

/// Greetings of two words: `Good morning Rosa`.
const GREETINGS_TWO: &[[&str; 2]] = &[
    ["good", "afternoon"],
    ["good", "evening"],
    ["good", "morning"],
    ["happy", "birthday"],
    ["best", "regards"],
    ["kind", "regards"],
    ["warm", "regards"],
    ["thank", "you"],
];

/// Fields of forms that hold a person: `Assignee: Rosa Pinto`.
const FIELDS: &[&str] = &[
    "assignee", "attendees", "attn", "author", "co-authored-by", "passenger", "patient", "present",
    "reporter", "reviewed-by", "reviewer", "signed-off-by", "tenant", "watcher",
];

/// What only a person does.
const PERSON_VERBS: &[&str] = &[
    "ate", "cooked", "cried", "forgot", "laughed", "married", "owes", "phoned", "slept", "smiled",
    "snores", "texted",
];

/// What is mostly said of persons. The first word of a sentence may be anything: "Data lives in ...".
const LIKELY_PERSON_VERBS: &[&str] =
    &["drove", "flew", "knows", "left", "lives", "loves", "moved", "thinks", "thought"];

/// What companies and programs do as well: enough for a name of two words.
const SHARED_VERBS: &[&str] = &[
    "agreed", "asked", "called", "mentioned", "rejected", "replied", "resigned", "said", "signed",
    "suggested", "told", "wrote",
];

/// What needs a "he" or "she" behind it: `Rosa says she ...`.
const VERBS_WITH_PRONOUN: &[&str] = &["asks", "says", "wants", "wishes"];

/// Words of organisations, places and posts.
const NOT_NAMES: &[&str] = &[
    "academy", "ag", "agency", "air", "airlines", "airport", "app", "association", "bank", "board",
    "bridge", "bv", "cafe", "center", "centre", "chief", "church", "city", "clinic", "cloud",
    "club", "college", "company", "corp", "council", "department", "developer", "director",
    "energy", "engineer", "executive", "foundation", "gateway", "gmbh", "group", "hall", "head",
    "health", "hospital", "hotel", "house", "inc", "institute", "insurance", "international",
    "island", "junior", "lake", "lead", "ltd", "manager", "market", "media", "ministry", "museum",
    "network", "office", "officer", "park", "party", "president", "restaurant", "river", "school",
    "senior", "server", "service", "services", "shop", "software", "station", "store", "street",
    "studio", "studios", "systems", "theatre", "tower", "travel", "university", "vice",
];

/// Nouns that a city or a product stands before: `call the Berlin office`.
const NOUNS_AFTER_PLACES: &[&str] = &[
    "account", "airport", "app", "branch", "city", "conference", "fans", "hotel", "office",
    "plant", "release", "server", "store", "support", "team", "university", "version", "warehouse",
];

/// A run of capitalized words and what stands around it.
pub(super) struct Candidate<'w> {
    /// The words of the part.
    pub(super) words: &'w [Word<'w>],
    /// The first word of the run.
    pub(super) start: usize,
    /// Behind its last word.
    pub(super) end: usize,
}

impl Candidate<'_> {
    /// Whether the words beside it say that it is a person.
    pub(super) fn is_person(&self) -> bool {
        let run = &self.words[self.start..self.end];
        let names = run.iter().filter(|word| word.case == Case::Name).count();
        if names == 0 || is_organisation(run) {
            return false;
        }
        if run[0].case == Case::Title {
            return true;
        }
        if self.next().is_some_and(|word| is_in(NOUNS_AFTER_PLACES, &word.lower())) {
            return false;
        }
        self.is_object()
            || self.is_related()
            || self.is_addressed()
            || self.is_field()
            || self.has_person_verb(names)
    }

    /// The word before, where nothing but a space is between.
    fn previous(&self, back: usize) -> Option<&Word<'_>> {
        let at = self.start.checked_sub(back)?;
        let joined = self.words[at..self.start].iter().all(|word| word.tail.is_empty());
        (joined && !self.words[self.start].opened).then(|| &self.words[at])
    }

    /// The word behind, where nothing but a space is between.
    fn next(&self) -> Option<&Word<'_>> {
        let last = &self.words[self.end - 1];
        self.words.get(self.end).filter(|_| last.tail.is_empty() && !last.possessive)
    }

    fn is_object(&self) -> bool {
        let Some(before) = self.previous(1) else { return false };
        let two = self.previous(2).map(Word::lower).unwrap_or_default();
        let one = before.lower();
        let pair =
            |[first, second]: &[&str; 2]| second == &one && (first.is_empty() || first == &two);
        if self.words[self.end - 1].possessive {
            return false;
        }
        if INTRODUCTIONS.iter().any(pair) {
            // "The file name is Main".
            let whose = self.previous(3).map(Word::lower).unwrap_or_default();
            let named = two != "name" || is_in(&["her", "his", "my"], &whose);
            return named && !self.is_origin();
        }
        // "Ask Rosa about it", but not the headings "Ping Pong" and "Met Gala".
        let spoken = before.text == one
            || before.first && matches!(before.text, "Ask" | "Remind" | "Tell" | "Thank");
        spoken
            && (is_in(VERBS_BEFORE_NAMES, &one)
                || PHRASES_BEFORE_NAMES.iter().any(pair)
                || self.is_caller(&two, &one))
    }

    /// "I'm Kenyan": the name of a people.
    fn is_origin(&self) -> bool {
        let last = self.words[self.end - 1].text;
        ["ese", "ish", "ian"].iter().any(|ending| last.ends_with(ending))
    }

    /// "this is Rosa from accounting".
    fn is_caller(&self, two: &str, one: &str) -> bool {
        two == "this"
            && one == "is"
            && self.next().is_some_and(|word| matches!(word.text, "from" | "speaking" | "calling"))
    }

    fn is_related(&self) -> bool {
        let last = &self.words[self.end - 1];
        let behind = self.words.get(self.end).map(Word::lower).unwrap_or_default();
        if last.possessive {
            return is_in(RELATIONS, &behind) || is_in(PERSONAL_EVENTS, &behind);
        }
        let relation = |at: usize| self.start.checked_sub(at).map(|at| &self.words[at]);
        let Some(word) = relation(1) else { return false };
        if !is_in(RELATIONS, &word.lower()) && !is_in(PROFESSIONS, &word.lower()) {
            return false;
        }
        let owned = relation(2).is_some_and(|two| {
            two.tail.is_empty() && (two.possessive || is_in(POSSESSIVES, &two.lower()))
        });
        // Behind a comma, or where somebody's is said: "our vet, Dr Mensah, is ...".
        word.tail.is_empty() || owned && word.tail == "," && !last.tail.is_empty()
    }

    fn is_addressed(&self) -> bool {
        let Some(before) = self.start.checked_sub(1).map(|at| &self.words[at]) else {
            return false;
        };
        let last = &self.words[self.end - 1];
        let closed =
            self.end == self.words.len() || last.tail.starts_with([',', '!', '.', ':', '?']);
        let one = before.lower();
        let two = self.start.checked_sub(2).map(|at| &self.words[at]);
        let two = two.filter(|word| word.tail.is_empty()).map(Word::lower).unwrap_or_default();
        let greeting = is_in(GREETINGS, &one)
            || GREETINGS_TWO.contains(&[two.as_str(), one.as_str()])
            // "Best Western" is a hotel.
            || is_in(&["best", "regards"], &one) && before.tail == ",";
        greeting && closed && !last.possessive && matches!(before.tail, "" | ",")
    }

    fn is_field(&self) -> bool {
        let Some(before) = self.start.checked_sub(1).map(|at| &self.words[at]) else {
            return false;
        };
        let closed = self.end == self.words.len()
            || !self.words[self.end - 1].tail.is_empty()
            || self.words[self.end].opened;
        closed && before.tail == ":" && is_in(FIELDS, &before.lower())
    }

    fn has_person_verb(&self, names: usize) -> bool {
        let Some(verb) = self.next() else { return false };
        let [one, two] = [0, 1].map(|at| self.words.get(self.end + at).map(Word::lower));
        if one.as_deref() == Some("and") && matches!(two.as_deref(), Some("i" | "me")) {
            return true;
        }
        let (verb, single) = (verb.lower(), names == 1);
        let first = single && self.words[self.start].first;
        // A plural at the start of a sentence is no name.
        if first && self.words[self.end - 1].text.ends_with('s') {
            return false;
        }
        let rest = self.words[self.end..].iter().skip(1).take_while(|word| !word.first);
        let pronoun = rest.take(4).any(|word| {
            let word = word.lower();
            is_in(&["he", "her", "him", "his", "she"], word.split('\'').next().unwrap_or_default())
        });
        is_in(PERSON_VERBS, &verb)
            || is_in(LIKELY_PERSON_VERBS, &verb) && (!first || pronoun)
            || is_in(SHARED_VERBS, &verb) && (!single || pronoun)
            || is_in(VERBS_WITH_PRONOUN, &verb) && pronoun
    }
}

/// Whether a run has a word of organisations, places or posts.
pub(super) fn is_organisation(run: &[Word]) -> bool {
    run.iter().any(|word| is_in(NOT_NAMES, &word.lower()))
}

fn is_in(list: &[&str], word: &str) -> bool {
    list.contains(&word)
}
