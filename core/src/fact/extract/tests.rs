//! Tables of sentences with what is found in them.

use proptest::prelude::*;

use super::*;

/// `kind subject/attribute=value`, as far as a fact has them.
fn shape(fact: &Extracted) -> String {
    let kind = format!("{:?}", fact.kind).to_lowercase();
    let subject = fact.subject.as_deref().unwrap_or_default();
    match (&fact.attribute, &fact.value) {
        (Some(attribute), value) => {
            format!("{kind} {subject}/{attribute}={}", value.as_deref().unwrap_or_default())
        }
        (None, _) => format!("{kind} {subject}"),
    }
}

pub(super) fn check(table: &[(&str, &[&str])]) {
    let mut wrong = Vec::new();
    for (text, expected) in table {
        let found: Vec<String> = forms(text).iter().map(shape).collect();
        if found != *expected {
            wrong.push(format!("{text}\n  expected {expected:?}\n  found    {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}

#[test]
fn statements_about_the_user() {
    check(&[
        ("I live in Porto.", &["fact user/lives_in=Porto"]),
        (
            "Hi there! I live in Porto, Portugal, and I love it.",
            &["fact user/lives_in=Porto, Portugal"],
        ),
        ("i just moved to Berlin", &["fact user/lives_in=Berlin"]),
        ("I'm based in Lyon these days.", &["fact user/lives_in=Lyon"]),
        ("I work at Hexagon Labs as a tester", &["fact user/works_at=Hexagon Labs"]),
        (
            "I’m a senior backend engineer at Orbit.",
            &["fact user/works_as=senior backend engineer"],
        ),
        (
            "I'm a nurse and I live in Leeds.",
            &["fact user/works_as=nurse", "fact user/lives_in=Leeds"],
        ),
        ("I'm a night owl", &["fact user"]),
        ("My name is Joana Reis.", &["fact user/name=Joana Reis"]),
        ("Hi, I'm Joana from accounting", &["fact user/name=Joana"]),
        ("Please call me Jo.", &["instruction user/called=call me Jo"]),
        ("I'm 34 years old", &["fact user/age=34"]),
        ("I'm vegetarian.", &["fact user/diet=vegetarian"]),
        ("I'm Portuguese, by the way.", &["fact user/nationality=Portuguese"]),
        ("I was born in Braga in 1988.", &["fact user/born_in=Braga"]),
        ("I'm allergic to penicillin.", &["fact user"]),
        ("I prefer tea over coffee.", &["preference user/coffe or tea=tea"]),
        ("I like hiking in the Alps.", &["fact user"]),
        ("I can't stand coriander", &["preference user"]),
        ("I have two cats.", &["fact user"]),
        ("We have a daughter and a son.", &["fact user"]),
        ("I've been to Japan twice.", &["fact user"]),
        ("I speak Dutch and a little Czech.", &["fact user"]),
        ("I'm married to Rui.", &["fact user/marital_status=married"]),
        ("My budget is €900.", &["fact user/budget=€900"]),
        ("My favourite colour is green.", &["preference user/favourite colour=green"]),
        ("My dog's name is Bento.", &["fact dog/name=Bento"]),
        ("My dog is called Bento.", &["fact dog"]),
        ("My boss is called \"Frida\".", &["fact boss/name=Frida"]),
        ("My sister's phone number is 555-0142.", &["fact sister/phone number=555-0142"]),
        ("My wife works at the city library.", &["fact wife/works_at=the city library"]),
        ("My brother lives in Oslo with two friends", &["fact brother/lives_in=Oslo"]),
        ("Maria's birthday is on 3 May.", &["fact Maria/birthday=3 May"]),
        (
            "I live in Porto and work at Orbit",
            &["fact user/lives_in=Porto", "fact user/works_at=Orbit"],
        ),
        ("My name's Ana and I'm 29.", &["fact user/name=Ana", "fact user/age=29"]),
        ("Please always answer in French.", &["instruction user/language=answer in French"]),
        ("From now on, use metric units", &["instruction user/units=use metric units"]),
        ("I have a budget of $3,000 for the trip.", &["fact user/budget=$3,000"]),
        ("I've been working as a teacher for years", &["fact user/works_as=teacher"]),
        ("I recently adopted a puppy", &["fact user"]),
        ("I usually work late on Tuesdays", &["fact user"]),
        ("My budget is €900, what laptop should I buy?", &["fact user/budget=€900"]),
    ]);
}

#[test]
fn statements_about_the_project() {
    check(&[
        ("The deadline is 14 May.", &["fact project/deadline=14 May"]),
        ("Our deadline is 14 May", &["fact project/deadline=14 May"]),
        ("Deadline is 14 May, 2026.", &["fact project/deadline=14 May, 2026"]),
        ("the staging port is 8443", &["fact staging/port=8443"]),
        ("The port of the staging server is 8443.", &["fact staging server/port=8443"]),
        ("The staging server listens on port 8443", &["fact staging server/port=8443"]),
        ("The deadline for the Alfred project is 14 May.", &["fact Alfred/deadline=14 May"]),
        ("We moved the port to 8443.", &["fact project/port=8443"]),
        ("We've just changed the staging port from 80 to 8443", &["fact staging/port=8443"]),
        ("our database is Postgres 16", &["fact project/database=Postgres 16"]),
        ("The CTO is Maria Silva.", &["fact project/cto=Maria Silva"]),
        ("We use Postgres for the ledger.", &["fact project"]),
        ("The latency is 45 ms.", &["metric project/latency=45 ms"]),
        ("p95 latency is 45ms", &["metric p95/latency=45ms"]),
        ("Revenue grew 12% last quarter.", &["metric Revenue"]),
        ("The orders table has 3 million rows", &["metric orders table"]),
        ("Latency dropped to 30 ms after the change", &["metric project/latency=30 ms"]),
        ("We have 12,000 users now", &["metric project"]),
        ("I weigh 72 kg.", &["metric user/weight=72 kg"]),
        ("A full build takes 14 minutes", &["metric full build"]),
    ]);
}

#[test]
fn corrections_fill_the_same_slot() {
    check(&[
        ("Actually, the deadline is 21 May.", &["fact project/deadline=21 May"]),
        ("No, my budget is €1,500 now.", &["fact user/budget=€1,500"]),
        ("Sorry, I meant my budget is €1,500.", &["fact user/budget=€1,500"]),
        ("Correction: the staging port is 9443", &["fact staging/port=9443"]),
        ("The deadline is now 21 May", &["fact project/deadline=21 May"]),
        ("The deadline has changed to 21 May.", &["fact project/deadline=21 May"]),
        ("The deadline moved from 14 May to 21 May.", &["fact project/deadline=21 May"]),
        ("My new phone number is 555-0177.", &["fact user/phone number=555-0177"]),
        ("I now live in Lisbon.", &["fact user/lives_in=Lisbon"]),
        ("Actually I live in Lisbon now", &["fact user/lives_in=Lisbon"]),
        ("my budget went up to €2,000", &["fact user/budget=€2,000"]),
        ("The deadline is 21 May, not 14 May.", &["fact project/deadline=21 May"]),
        ("I don't live in Porto anymore, I moved to Lisbon.", &["fact user/lives_in=Lisbon"]),
        ("No, the deadline isn't 14 May, it's 21 May.", &["fact project/deadline=21 May"]),
        ("My budget was €900 but now it's €1,500", &["fact user/budget=€1,500"]),
        (
            "Update: the launch date moved to 2 September.",
            &["fact project/launch date=2 September"],
        ),
        ("The deadline was pushed back to 21 May", &["fact project/deadline=21 May"]),
    ]);
}

#[test]
fn decisions_tasks_links_and_names() {
    check(&[
        ("We decided to use SQLite for the cache.", &["decision project"]),
        ("We've agreed on weekly releases", &["decision project"]),
        ("Let's go with option B.", &["decision project"]),
        ("We will go with the blue theme", &["decision project"]),
        ("Decision: we ship without the importer.", &["decision project"]),
        ("We decided to move the deadline to 21 May.", &["decision project/deadline=21 May"]),
        ("I've decided to learn Norwegian", &["decision project"]),
        ("Remind me to renew my passport.", &["task user"]),
        ("Can you remind me to call Ana?", &["task user"]),
        ("I need to send the invoice by Friday.", &["task user"]),
        ("we still have to rotate the keys", &["task user"]),
        ("TODO: write the migration guide", &["task user"]),
        ("- [ ] water the plants", &["task user"]),
        ("Please don't forget the milk.", &["task user"]),
        ("Submit the report by Monday.", &["task user"]),
        ("I'll finish the draft by end of week", &["task user"]),
        (
            "Our wiki is https://wiki.example.org/home.",
            &["link project/wiki=https://wiki.example.org/home"],
        ),
        (
            "The staging dashboard is at https://d.example.org/?q=1",
            &["link staging/dashboard=https://d.example.org/?q=1"],
        ),
        (
            "Here's the design document: https://docs.example.org/a",
            &["link design/document=https://docs.example.org/a"],
        ),
        ("https://ci.example.org is our build page", &["link build/page=https://ci.example.org"]),
        ("Alfred is our build server.", &["entity Alfred"]),
        ("Maria is my sister.", &["entity Maria"]),
        ("Rosa and Ivo are my neighbours.", &["entity Rosa and Ivo"]),
        ("My sister Maria visits on Sunday.", &["entity Maria"]),
        ("Yesterday our mail server Hermes went down", &["entity Hermes"]),
        ("Blue Whale is a logistics company.", &["entity Blue Whale"]),
    ]);
}

#[test]
fn what_is_no_statement_of_the_user() {
    let silent = [
        "What is the deadline?",
        "Is my budget €900?",
        "Where do I live",
        "If I lived in Porto, my budget would be €900.",
        "I would live in Porto.",
        "Imagine my budget is €9,000.",
        "Suppose the port is 8443.",
        "Maybe I'll move to Berlin",
        "Let's say the deadline is 14 May.",
        "He said \"I live in Porto. I work at Acme.\"",
        "“My budget is €900” is what the sign reads.",
        "> I live in Porto",
        "```\nI live in Porto.\nthe port is 8443\n```",
        "<recalled source=\"m1\">\nI live in Porto.\n</recalled>",
        "<recalled>\nMy budget is €900.",
        "Tom said that the deadline is 14 May.",
        "My boss thinks I live in Porto.",
        "According to Ana, the port is 8443.",
        "The port is 8443, Tom says.",
        "I think the deadline is 14 May.",
        "I heard that Maria lives in Porto.",
        "Translate the following:\nI live in Porto. My budget is €900.",
        "I'm fine, thanks.",
        "I think so",
        "I'm sorry about that.",
        "I'm happy about that!",
        "I like it.",
        "I love how this works",
        "I have to say, that was quick.",
        "I need to know the answer",
        "I have to admit that it works",
        "my question is about Rust",
        "My code is not working",
        "The problem is the port",
        "It is 14 May.",
        "This is my last try",
        "That's great, let's go!",
        "We agreed to disagree",
        "I don't have a dog.",
        "The deadline is not 14 May.",
        "I'm a bit tired today",
        "I'm going home now",
        "Hello!",
        "Thanks, you're a star",
        "I have a question about lifetimes",
        "Coffee is a great thing",
        "Summarize https://example.org/a",
        "Never mind.",
        "- [x] water the plants",
        "I was wondering whether you could help",
        "my head is killing me",
        "I might have to renew it by Friday.",
        "The admin password is stored in Vault.",
        "My sister is visiting from Porto.",
        "I feel tired because my budget is tight.",
        "You said my budget is €900.",
        "Can you write a poem about my dog Bento?",
        "The answer is 42.",
        "Their budget is €900.",
        "The port is 8443 if TLS is on.",
        "I finished the report by Friday.",
        "I love the suggestion, thanks.",
    ];
    let wrong: Vec<(&str, Vec<Extracted>)> = silent
        .into_iter()
        .map(|text| (text, forms(text)))
        .filter(|(_, facts)| !facts.is_empty())
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_text_is_the_sentence() {
    let facts = forms("Some talk first.  My   budget is €900\tfor now. And more talk!");
    assert_eq!(facts.len(), 1, "{facts:?}");
    assert_eq!(facts[0].text, "My budget is €900 for now.");
    let own = forms(
        "<recalled>\nI live in Porto.\n</recalled> I live in Lisbon.\n> quoted\n\nMy dentist is Dr. Silva.",
    );
    let shapes: Vec<String> = own.iter().map(shape).collect();
    assert_eq!(shapes, ["fact user/lives_in=Lisbon", "fact user/dentist=Dr. Silva"]);
}

#[test]
fn tags_name_projects_and_hashtags() {
    let table: &[(&str, &[&str])] = &[
        ("For project Alfred, the deadline is 14 May. #Planning", &["project:alfred"]),
        (
            "The deadline for the Alfred project is 14 May #Planning #q2",
            &["#planning", "#q2", "project:alfred"],
        ),
        ("We decided to pause project Blue Whale.", &["project:blue whale"]),
        ("I live in Porto #42", &[]),
    ];
    for (text, expected) in table {
        let facts = forms(text);
        let tags = facts.first().map(|fact| fact.tags.clone()).unwrap_or_default();
        assert_eq!(tags, *expected, "{text}: {facts:?}");
    }
}

#[test]
fn messages_have_limits() {
    assert_eq!(forms(&"My budget is €900. The port is 80.\n".repeat(50)).len(), 2);
    let many: String = (0..100).map(|n| format!("The port of host{n} is {n}.\n")).collect();
    assert_eq!(forms(&many).len(), 20);
    let long = format!("I need to call {}", "x".repeat(5_000));
    assert_eq!(forms(&long)[0].text.chars().count(), MAX_FACT_CHARS);
}

proptest! {
    #[test]
    fn any_text_gives_short_facts(text in "(?s).{0,300}") {
        for fact in forms(&text) {
            prop_assert!(fact.text.chars().count() <= MAX_FACT_CHARS);
        }
    }

    #[test]
    fn any_words_give_short_facts(words in proptest::collection::vec(
        prop_oneof![
            "(I|I'm|my|our|the|we|live|in|is|are|moved|to|from|of|for|project|at|and|Maria|sister|decided|if)",
            "[,.:;!?\"'’“”`()—–-]{1,3}", "[€$]?[0-9]{1,4}[%,.]?", "\\PC{1,6}", "[ \n]",
        ], 0..60,
    )) {
        let text = words.join(" ");
        for fact in forms(&text) {
            prop_assert!(fact.text.chars().count() <= MAX_FACT_CHARS);
            prop_assert!(fact.attribute.is_none() || fact.subject.is_some());
        }
    }
}

#[test]
fn what_has_no_known_form_is_read() {
    let kinds =
        |text: &str| -> Vec<FactKind> { extract(text).into_iter().map(|fact| fact.kind).collect() };
    for (text, expected) in [
        ("shell examples in zsh please", vec![FactKind::Instruction]),
        (
            "Scripts with a main() and argparse, every time, that's the shape I want.",
            vec![FactKind::Instruction],
        ),
        ("Our Marathi translator is Snehal, she's quick like a squirrel.", vec![FactKind::Fact]),
        // Found by form once, not twice.
        ("Always answer in French.", vec![FactKind::Instruction]),
        ("I live in Porto.", vec![FactKind::Fact]),
        // Not the user's own.
        ("My boss put up a poster: \"Always answer the phone in Latin.\"", vec![]),
        ("What if my budget was 5,000 euros?", vec![]),
        ("Can you shorten this paragraph?", vec![]),
    ] {
        assert_eq!(kinds(text), expected, "{text}");
    }
}

#[test]
fn what_is_read_is_bounded() {
    let long = format!("zsh examples {} please", "and more of them ".repeat(100));
    assert!(extract(&long).iter().all(|fact| fact.text.chars().count() <= MAX_FACT_CHARS));
    let many = "shell examples in zsh please\n".repeat(50);
    assert!(extract(&many).len() <= MAX_FACTS);
}
