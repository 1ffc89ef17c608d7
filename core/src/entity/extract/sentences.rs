//! Sentences that look like more, or less, than what they hold.

use EntityKind::{Address, Date, Email, Id, Money, Name, Phone, Project, Url};

use super::tests::check;
use super::*;

#[test]
fn addresses_end_where_the_sentence_ends() {
    check(&[
        ("We live at 5 Oak Avenue, Berlin. Call me.", &[(Address, "5 Oak Avenue, Berlin")]),
        ("5 Oak Avenue, Berlin. Call", &[(Address, "5 Oak Avenue, Berlin")]),
        ("She is at 5 Oak Avenue. Berlin is far.", &[(Address, "5 Oak Avenue")]),
        ("Come to 9 Elm Rd., then ring", &[(Address, "9 Elm Rd.")]),
        ("I am at 9 Elm St. Come over.", &[(Address, "9 Elm St.")]),
        ("He is at 5 Oak Avenue, Monday at the latest", &[(Address, "5 Oak Avenue")]),
        ("At 5 Oak Avenue, Tomas said no.", &[(Address, "5 Oak Avenue")]),
        ("Is 12 St. James Street, Leeds near?", &[(Address, "12 St. James Street, Leeds")]),
        ("ship to Hauptstr. 7, 80331 München! Thanks", &[(Address, "Hauptstr. 7, 80331 München")]),
        (
            "ship to 40 Kent Street, Sydney NSW 2000. Today",
            &[(Address, "40 Kent Street, Sydney NSW 2000")],
        ),
        (
            "the flat is at Keizersgracht 8, 1015 CN Amsterdam",
            &[(Address, "Keizersgracht 8, 1015 CN Amsterdam")],
        ),
        ("it is at 77 King Street West, Toronto", &[(Address, "77 King Street West, Toronto")]),
        ("park at 3 Hill Road, Bath and walk", &[(Address, "3 Hill Road, Bath")]),
        (
            "it is 8 Rue Sainte-Anne, 75001 Paris, France.",
            &[(Address, "8 Rue Sainte-Anne, 75001 Paris, France")],
        ),
        (
            "the house at 3 King's Road, London SW3 4RP is old",
            &[(Address, "3 King's Road, London SW3 4RP")],
        ),
        ("At 5 Oak Avenue, Maria and Rui wait.", &[(Address, "5 Oak Avenue")]),
        ("In 2008 Wall Street fell.", &[]),
        ("we saw 2 Dr. Who films", &[]),
        ("they had 4 Google Drive accounts", &[]),
        ("Via Email 3 people asked", &[]),
        ("the 5 Star Court", &[]),
        ("in Room 12 Park Place", &[]),
        ("since Blockade 2 began", &[]),
        ("meet me in Baker Street", &[]),
    ]);
}

#[test]
fn places_and_products_are_no_persons() {
    check(&[
        ("Joan moved to Berlin", &[]),
        ("Last year Joan moved to Berlin", &[(Name, "Joan")]),
        ("Joan says she likes Berlin", &[(Name, "Joan")]),
        ("Data lives in Postgres. Google says no.", &[]),
        ("Sunday morning Berlin. We stay at the Best Western, as always", &[]),
        ("Ping Pong and the Met Gala. Contact Form", &[]),
        ("Chelsea's manager and Vodafone's app", &[]),
        ("I'm Head of Sales, she is Vice President", &[]),
        ("Good evening Rosa, thank you Tomas.", &[(Name, "Rosa"), (Name, "Tomas")]),
        ("please ask Rosa and Tomas", &[(Name, "Rosa"), (Name, "Tomas")]),
        ("Regards\nNorthwind Energy", &[]),
        ("I told Joan that Berlin is cold", &[(Name, "Joan")]),
        ("Joan, Berlin and the rest", &[]),
        ("We flew from New York to Buenos Aires", &[]),
        ("It runs on Google Cloud and Visual Studio", &[]),
        ("Today Slack is down", &[]),
        ("we use GitHub and PostgreSQL", &[]),
        ("our office in Berlin said so", &[]),
        ("the Berlin office called", &[]),
        ("Call Monday. Ask April or May.", &[]),
        ("I'm German and I'm in London", &[]),
        ("I'm Sorry About That", &[]),
        ("Best Buy has it in Stock", &[]),
        ("What New Features Does Your Plan Have", &[]),
        ("Hi Team, hello World!", &[]),
        ("Dear Customer, we miss you", &[]),
        ("ERROR Connection Pool Timeout while reading", &[]),
        ("he read \"The Great Gatsby\" twice", &[]),
        ("ask Rosa, not Paris", &[(Name, "Rosa")]),
        ("Maria's sister likes the sea", &[(Name, "Maria")]),
        ("Ana Costa and I met her boss, Rui.", &[(Name, "Ana Costa"), (Name, "Rui")]),
        ("Her name is Lena, the file name is Main", &[(Name, "Lena")]),
        ("Dear Ms. Ito,", &[(Name, "Ms. Ito")]),
        ("Kind regards, Piotr Nowak", &[(Name, "Piotr Nowak")]),
        ("Best,\nPiotr Nowak", &[(Name, "Piotr Nowak")]),
        ("Thanks,\nSee You There", &[]),
        ("Assignee: Lena Vogt", &[(Name, "Lena Vogt")]),
        ("```\nask Maria // my boss Tomas\n```\nask Rosa", &[(Name, "Rosa")]),
    ]);
}

#[test]
fn finds_names_of_projects() {
    check(&[
        ("The project is called Zeus", &[(Project, "Zeus")]),
        ("The project is called Zeus. Call me.", &[(Project, "Zeus")]),
        ("We named the project \"Blue Heron\".", &[(Project, "Blue Heron")]),
        ("Let's call this project Osprey!", &[(Project, "Osprey")]),
        ("The project's name is Zeus", &[(Project, "Zeus")]),
        ("the new side project, called Wren, is small", &[(Project, "Wren")]),
        ("Project: Zeus", &[(Project, "Zeus")]),
        ("its codename is Kestrel", &[(Project, "Kestrel")]),
        ("project Zeus Monday at nine", &[(Project, "Zeus")]),
        ("Project Management Office", &[]),
        ("the German project is late", &[]),
        ("my Python project and our API project", &[]),
        ("Project Status: green", &[]),
        ("every project has Risks", &[]),
        ("the code named Foo in the file", &[]),
    ]);
}

#[test]
fn email_addresses_have_one_key() {
    check(&[
        ("mail a@b.org or A@B.org", &[(Email, "a@b.org")]),
        ("A@B.org wrote. So did a@b.org.", &[(Email, "a@b.org")]),
        ("write to a@b.org.Call me", &[(Email, "a@b.org")]),
        ("<Ana.Costa@Mail.Example.ORG>,", &[(Email, "ana.costa@mail.example.org")]),
        ("mailto:a@b.org", &[(Email, "a@b.org")]),
        ("to Ana@Mail.Example.Com;", &[(Email, "ana@mail.example.com")]),
        ("clone git@example.org:team/repo", &[]),
        ("postgres://app:pass@db.example.org/x", &[]),
        ("the icon logo@2x.png", &[(Id, "logo@2x.png")]),
        ("restart getty@tty1.service", &[]),
        ("zoë@example.org", &[]),
        ("follow @ana@social.example", &[]),
        ("a@b..org and a@b", &[]),
    ]);
}

#[test]
fn other_values_are_right_or_not_found() {
    check(&[
        ("paid 1.249,00 € on 12 Aug", &[(Money, "1.249,00 €"), (Date, "12 Aug")]),
        ("at 4 p.m. Then we left", &[(Date, "4 p.m.")]),
        ("I may 3 times a day", &[]),
        ("you may 12 be right", &[]),
        ("call 0151 555 01234 now", &[(Phone, "0151 555 01234")]),
        ("see http://a.example/x.", &[(Url, "http://a.example/x")]),
        ("it returns 0x80070643", &[(Id, "0x80070643")]),
    ]);
}
