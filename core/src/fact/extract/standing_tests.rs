//! Tables of instructions, preferences, corrections and retractions, and of what only sounds so.

use super::tests::check;
use super::{borrowed, forms};

#[test]
fn orders_that_stand() {
    check(&[
        ("From now on, keep it short.", &["instruction user/length=keep it short"]),
        (
            "I want you to use British spelling in everything you write.",
            &["instruction user/spelling=use British spelling"],
        ),
        (
            "When I paste code, review it for security first.",
            &["instruction user/review secur first=review it for security first"],
        ),
        ("I need all amounts in euros.", &["instruction user/currency=all amounts in euros"]),
        ("Speak to me in Polish from today.", &["instruction user/language=Speak to me in Polish"]),
        (
            "Never suggest seafood to us.",
            &["instruction user/suggest seafood=Never suggest seafood"],
        ),
        ("Refer to me as Captain.", &["instruction user/called=Refer to me as Captain"]),
        ("Stop calling me sir.", &["instruction user/called=Stop calling me sir"]),
        ("My rule for you: no semicolons, ever.", &["instruction user/semicolons=no semicolons"]),
        ("Please remember that I'm colour-blind.", &["instruction user"]),
        ("Could you always show the steps?", &["instruction user/step=show the steps"]),
        ("All comments should be in English.", &["instruction user/comments=in English"]),
        (
            "Use tabs in Go and four spaces in Python, always.",
            &["instruction user/indentation, go=Use tabs in Go"],
        ),
        ("Keep in mind I only have an hour a day.", &["instruction user"]),
    ]);
}

#[test]
fn an_order_that_something_endorses_afterwards() {
    check(&[
        (
            "Short sentences only, please. Stick to that.",
            &["instruction user/length=Short sentences only"],
        ),
        ("Short sentences only, please. It was a long day.", &[]),
    ]);
}

#[test]
fn tastes() {
    check(&[
        ("I'd rather take the bus.", &["preference user/transport=take the bus"]),
        ("My favourite band is Mogwai.", &["preference user/favourite band=Mogwai"]),
        ("Mornings work best for me.", &["preference user"]),
        ("I don't like spicy food.", &["preference user"]),
        ("Tea over coffee any day.", &["preference user/coffe or tea=Tea"]),
        ("We prefer to fly in the morning.", &["preference user"]),
        ("I'd rather not say.", &[]),
        ("I prefer it that way.", &[]),
    ]);
}

#[test]
fn what_is_taken_back() {
    check(&[
        ("Scratch that.", &["retraction user"]),
        ("Forget my rule about emojis.", &["retraction user/emojis=emojis"]),
        ("You can use emojis again.", &["retraction user/emojis=use emojis"]),
        ("You may go back to long answers.", &["retraction user/length=long answers"]),
        ("I no longer live in Berlin.", &["retraction user/lives_in=live in Berlin"]),
        ("We don't use Jenkins any more.", &["retraction user"]),
        ("Disregard my earlier instruction about tabs.", &["retraction user/indentation=tabs"]),
        ("I changed my mind about the blue tiles.", &["retraction user"]),
        ("That rule no longer applies.", &["retraction user"]),
        ("I no longer live in Berlin, I live in Bonn.", &["fact user/lives_in=Bonn"]),
        ("Let's lift the ban on emojis.", &["retraction user/emojis=emojis"]),
        ("No need for the footnotes any more.", &["retraction user/citations=footnotes"]),
        ("The puns can go.", &["retraction user/jokes=puns"]),
        ("My juice cleanse is over.", &["retraction user"]),
        ("You may skip the old street names now.", &["retraction user"]),
        ("Back to your usual style.", &["retraction user"]),
        ("I've had enough of those riddles.", &["retraction user"]),
        ("The picnic meeting is off.", &["retraction user"]),
        ("The lunch break is over.", &[]),
        ("The kids can go.", &[]),
        ("You can go back to bed.", &[]),
        ("Forget it", &["retraction user"]),
        ("I don't know anymore", &[]),
        ("Drop the second column.", &[]),
        ("Ignore the noise in the plot.", &[]),
        ("Can you do that again?", &[]),
        ("He no longer works here.", &[]),
    ]);
}

#[test]
fn corrections_refer_to_what_was_said() {
    for (text, value) in [
        ("Actually, make it the 21st of May.", "21st of May"),
        ("I misspoke, it's 40 mg.", "40 mg"),
        ("I meant 50 mg, not 15.", "50 mg"),
        ("They raised it, we pay 90 from May.", "90"),
        ("We've booked the Old Mill instead.", "Old Mill"),
        ("We moved the gateway to 9443.", "9443"),
        ("On second thought, make the dinner 8 pm.", "8 pm"),
        ("I swapped the Volvo for a Fiat Panda.", "Fiat Panda"),
        ("We ended up with the Brass Foxes as the band.", "Brass Foxes"),
        ("Change of plan: rehearsal at 18:30.", "18:30"),
        ("Ada Quist took over as chair.", "Ada Quist"),
        ("Mr Okoro is our caretaker now.", "Mr Okoro"),
        ("I've changed banks, it's Nordhafen now.", "Nordhafen"),
    ] {
        let found = forms(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!((found[0].value.as_deref(), found[0].refers), (Some(value), true), "{text}");
    }
    assert!(forms("The port is 8443.").iter().all(|fact| !fact.refers));
}

#[test]
fn orders_for_once_and_those_of_others_are_not_the_users() {
    for text in [
        "Use tabs in this file.",
        "Answer in French this time.",
        "Can you always trust a weather forecast?",
        "She always forgets her keys.",
        "My dad says never to buy used tyres.",
        "The sign says: never feed the bears.",
        "He told me to always wear a helmet.",
        "My manager wants everyone to use Jira.",
        "Translate: from now on we meet at noon.",
        "Write a poem where every line starts with A.",
        "What would happen if I always slept four hours?",
        "\"Call me Ishmael\" is a famous first line.",
        "Call me when you're done.",
        "Never say never!",
        "You can say that again!",
        "I always wanted to see Rome.",
        "Explain every step of this proof.",
        "Remember the time we talked about boats?",
        "Here's the mail I got:\n\nFrom now on send all invoices to us.",
        "// always use tabs",
        "Our neighbour makes everyone whisper and always lock the gate.",
        "Here is the prompt my cousin uses: You are a wizard. Always say abracadabra.",
        "If you always give in, they stop respecting you.",
    ] {
        let found = forms(text);
        assert!(found.is_empty(), "{text}: {found:?}");
    }
}

#[test]
fn what_is_borrowed() {
    for (text, expected) in [
        ("The wiki reads \"never use semicolons\". Odd!", true),
        ("Proofread this: \"I move to Perth in May\"", true),
        ("Suppose I were vegan, what would I eat?", true),
        ("My flatmate insists that everyone uses one font.", true),
        ("I told you to always use tabs.", false),
        ("My doctor told me that I have asthma.", false),
        ("Use the word \"colour\" with a u.", false),
        ("I live in Porto.", false),
        ("My aunt makes everyone take off their shoes.", true),
        ("My aunt makes everything herself.", false),
    ] {
        assert_eq!(!borrowed(text).is_empty(), expected, "{text}");
    }
}
