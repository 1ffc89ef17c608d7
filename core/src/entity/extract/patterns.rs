//! The patterns of values. Word boundaries are ASCII ones, since Unicode boundaries send a message
//! with one accent to a matcher that is many times slower.

use std::sync::LazyLock;

use regex::Regex;

fn compiled(pattern: &str) -> Regex {
    #[expect(clippy::expect_used, reason = "constant patterns; a test compiles each of them")]
    Regex::new(pattern).expect("the pattern is valid")
}

pub(super) static URL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r#"(?i)(?-u:\b)(?:(?:https?|ftp|wss?|ssh|git)://|www\.[a-z0-9-]+\.)[^\s<>"'`]+"#)
});

pub(super) static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r"[A-Za-z0-9][A-Za-z0-9._%+-]*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}")
});

pub(super) static UUID: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"));

pub(super) static PHONE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        // International, with an optional area in brackets.
        r"(?:\+|(?-u:\b)00)[1-9][0-9]{0,2}[ .-]?(?:\([0-9]{1,4}\)[ .-]?)?[0-9]{1,4}",
        r"(?:[ .-]?[0-9]{2,4}){1,5}",
        // An area in brackets; groups of three; local; French; with a trunk 0; digits only.
        r"|\([0-9]{2,5}\)[ -]?[0-9]{3,4}(?:[ .-]?[0-9]{3,4})?",
        r"|[0-9]{3}[-. ][0-9]{3}[-. ][0-9]{3,4}",
        r"|[0-9]{3}-[0-9]{4}",
        r"|0[0-9](?:[ .][0-9]{2}){4}",
        r"|0[0-9]{1,4}[ /-][0-9]{3,8}(?:[ -][0-9]{2,6})*",
        r"|[0-9]{7,12}",
    ))
});

macro_rules! amount {
    () => {
        r"[0-9]{1,15}(?:[,.'’][0-9]{3})*(?:[.,][0-9]{1,2})?"
    };
}

macro_rules! scale {
    () => {
        r"(?: ?(?:k|K|m|M|bn|mn|thousand|million|billion|trillion)(?-u:\b))?"
    };
}

macro_rules! currency {
    () => {
        concat!(
            r"(?:USD|EUR|GBP|CHF|JPY|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|INR|BRL|CNY|MXN|ZAR)",
            r"(?-u:\b)"
        )
    };
}

pub(super) static MONEY: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?:US|CA|AU|NZ|HK|A|C|R)?[$€£¥₹₩₽₺₴₪] ?",
        amount!(),
        scale!(),
        r"|(?-u:\b)",
        currency!(),
        " ?",
        amount!(),
        scale!(),
        r"|[0-9]{1,15}(?:[,.'’ ][0-9]{3})*(?:[.,][0-9]{1,2})?",
        scale!(),
        r" ?(?:[€£¥₹₩₽₺₴₪$]|",
        currency!(),
        r"|(?:[Ee]uros?|[Dd]ollars?|pounds?|yen|francs?|rupees?|pesos?|cents?|bucks|quid",
        r"|kronor|zloty|reais)(?-u:\b))",
    ))
});

macro_rules! months {
    () => {
        concat!(
            r"(?:[Jj]an(?:uary)?|[Ff]eb(?:ruary)?|[Mm]ar(?:ch)?|[Aa]pr(?:il)?|May|[Jj]une?",
            r"|[Jj]uly?|[Aa]ug(?:ust)?|[Ss]ept?(?:ember)?|[Oo]ct(?:ober)?|[Nn]ov(?:ember)?",
            r"|[Dd]ec(?:ember)?)(?-u:\b)\.?",
        )
    };
}

macro_rules! year {
    () => {
        r"[12][0-9]{3}(?-u:\b)"
    };
}

pub(super) static DATE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"[0-9]{4}-[01][0-9]-[0-3][0-9](?:[T ][0-2][0-9]:[0-5][0-9]",
        r"(?::[0-5][0-9](?:\.[0-9]{1,9})?)?(?:Z|[+-][0-2][0-9]:?[0-5][0-9])?)?",
        r"|[0-3]?[0-9]/[0-3]?[0-9]/(?:[0-9]{4}|[0-9]{2})",
        r"|[0-3]?[0-9][.-][01]?[0-9][.-][12][0-9]{3}",
        // 14 May 2026, the 3rd of June.
        r"|[0-3]?[0-9](?:st|nd|rd|th)?(?: of)? ",
        months!(),
        "(?:,? ",
        year!(),
        ")?",
        // May 14th, 2026, and May 2026.
        r"|(?-u:\b)",
        months!(),
        r" (?:[0-3]?[0-9](?:st|nd|rd|th)?(?-u:\b)(?:,? ",
        year!(),
        ")?|",
        year!(),
        ")",
        r"|(?-u:\b)(?:[Nn]ext|[Ll]ast|[Tt]his|[Cc]oming|[Pp]ast) ",
        r"(?:[Mm]on|[Tt]ues|[Ww]ednes|[Tt]hurs|[Ff]ri|[Ss]atur|[Ss]un)day(?-u:\b)",
        r"|[0-2]?[0-9]:[0-5][0-9](?::[0-5][0-9])?(?: ?[AaPp]\.?[Mm](?-u:\b)\.?)?",
        r"|[01]?[0-9] ?[AaPp]\.?[Mm](?-u:\b)\.?",
    ))
});

/// A capitalized word in Latin script; all of Unicode's letters would take a hundred times the memory.
macro_rules! capital {
    () => {
        r"[A-ZÀ-ÖØ-ÞĀ-Ž][A-Za-zÀ-ÖØ-öø-ž'’-]*"
    };
}

macro_rules! house {
    () => {
        r"[0-9]{1,5}(?:[-–/][0-9]{1,4})?[A-Za-z]?(?-u:\b)"
    };
}

/// How streets are written in one part of the world.
pub(super) struct Street {
    /// Street and number.
    pub(super) pattern: Regex,
    /// Whether only a place behind it tells it from other words with a number.
    pub(super) needs_place: bool,
}

/// The forms of streets, the more specific first.
pub(super) static STREETS: LazyLock<Vec<Street>> = LazyLock::new(|| {
    let form = |pattern, needs_place| Street { pattern: compiled(pattern), needs_place };
    vec![
        // 12 N. Main Street, 350 5th Ave, 77 King Street West.
        form(
            concat!(
                r"(?-u:\b)",
                house!(),
                r" (?:[NSEW]\.? )?(?:(?:St\. |[0-9]{1,3}(?:st|nd|rd|th) |",
                capital!(),
                r" ){1,4}(?:Street|Avenue|Road|Boulevard|Lane|Drive|Court|Place|Square|Way|Terrace",
                r"|Parkway|Highway|Close|Crescent|Row|Alley|Quay|Circle|Gardens|Grove|Hill",
                r"|(?:St|Ave|Rd|Blvd|Ln|Dr|Ct|Pl|Sq|Pkwy|Hwy)(?-u:\b)\.?)|Broadway)",
                r"(?: (?:North|South|East|West|[NSEW]{1,2})(?-u:\b))?",
            ),
            false,
        ),
        // 12 Rue de la Paix.
        form(
            concat!(
                r"(?-u:\b)[0-9]{1,4}(?: ?bis)?,? (?:[Rr]ue|[Aa]venue|[Bb]oulevard|[Pp]lace|[Cc]hemin",
                r"|[Ii]mpasse|[Aa]llée|[Qq]uai|[Cc]ours)(?: (?:d[eu]s?|de la|l[ae]s?))*",
                r"(?: (?:[ldLD]['’])?",
                capital!(),
                r"){1,4}",
            ),
            false,
        ),
        // Rua das Flores 12, Calle de Atocha 27, ul. Długa 5.
        form(
            concat!(
                r"(?-u:\b)(?:Rua|Avenida|Travessa|Praça|Calle|Carrer|Paseo|Viale|Piazza|Rue|[Uu]lica",
                r"|(?:Av|[Uu]l)\.)(?: (?:d[aeo]s?|del|della|di|de la|",
                capital!(),
                r")){1,6},? (?:n\.?º ?)?",
                house!(),
            ),
            false,
        ),
        // Via Roma 12, Gran Vía 5: also the first words of a sentence.
        form(
            concat!(
                r"(?-u:\b)(?:Via|Corso|Largo|Plaza|Gran)(?: (?:d[aeo]s?|del|della|di|",
                capital!(),
                r")){1,4},? ",
                house!(),
            ),
            true,
        ),
        // Musterstraße 5, Berliner Allee 12, Prinsengracht 263, Storgatan 12.
        form(
            concat!(
                r"(?:[A-ZÀ-ÖØ-Þ][A-Za-zÀ-ÖØ-öø-ž-]*(?:straße|strasse|str\.|weg|platz|allee|gasse|damm",
                r"|ufer|gracht|straat|laan|plein|gatan|vägen|veien)|",
                capital!(),
                r"[ -](?:Straße|Strasse|Str\.|Platz|Allee|Gasse|Ufer)) ",
                house!(),
            ),
            false,
        ),
        // Vesterbrogade 21: "Brigade 4" has the same ending.
        form(concat!(r"[A-ZÆØÅ][a-zæøå]+(?:gade|gata|vej|kade|katu) ", house!()), true),
    ]
});

/// The part of a house, behind its street.
pub(super) static UNIT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"^(?:,? (?:Apt|Apartment|Suite|Ste|Unit|Flat|Floor)\.? ?[A-Za-z0-9-]{1,6}(?-u:\b)|,? #[0-9]{1,5})",
    )
});

/// A postcode behind a street or a city.
pub(super) static POSTCODE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"^,? (?:",
        // Great Britain and Canada.
        r"[A-Z]{1,2}[0-9][A-Z0-9]? [0-9][A-Z]{2}|[A-Z][0-9][A-Z] [0-9][A-Z][0-9]",
        // The Netherlands, Sweden, Poland.
        r"|[0-9]{4} [A-Z]{2}|[0-9]{3} [0-9]{2}|[0-9]{2}-[0-9]{3}",
        r"|(?:[A-Z]{1,2}-)?[0-9]{4,6}(?:-[0-9]{3,4})?",
        r")(?-u:\b)",
    ))
});

/// A state of the United States, Canada or Australia, behind a city.
pub(super) static STATE: LazyLock<Regex> = LazyLock::new(|| compiled(r"^,? [A-Z]{2,3}(?-u:\b)"));

/// The name of a city, behind a space.
pub(super) static CITY: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        "^ ",
        capital!(),
        r"[a-zß-öø-ž](?: (?:(?:am|an der|upon|de|da|do|la|del) )?",
        capital!(),
        r"[a-zß-öø-ž]){0,2}",
    ))
});

pub(super) static ID: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        // Paths and file names.
        r"[A-Z]:\\[A-Za-z0-9_.$\\-]+|(?:~|\.{1,2})/[A-Za-z0-9_.@+/-]*[A-Za-z0-9_]",
        r"|(?:/[A-Za-z0-9_.@+-]+){2,}/?",
        r"|(?:[A-Za-z0-9_.@-]+/)+[A-Za-z0-9_-]+(?:\.[A-Za-z0-9]{1,8})+",
        r"|[A-Za-z0-9_-]+(?:\.[a-z]{2,4})?\.(?:rs|toml|py|js|ts|tsx|json|ya?ml|md|txt|csv|log",
        r"|sh|go|java|c|cpp|h|html|css|sql|pdf|docx?|xlsx?|png|jpe?g|zip|conf|ini|env|lock)",
        r"(?-u:\b)",
        r"|[A-Za-z0-9_-]+@[0-9]x\.(?:png|jpe?g|webp|gif|svg)(?-u:\b)",
        // Advisories and tickets, addresses of hosts, versions, error codes, hashes.
        r"|[A-Z]{2,10}-[0-9]{4}-[0-9]{3,7}|[A-Z][A-Z0-9]{1,9}-[0-9]{1,7}",
        r"|[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]{1,5}|/[0-9]{1,2})?",
        r"|v?[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z]+(?:\.[0-9A-Za-z]+)*)?(?:\+[0-9A-Za-z.]+)?",
        r"|v[0-9]+(?:\.[0-9]+)+",
        r"|0x[0-9A-Fa-f]{4,16}|(?:ERR|ERROR)_[A-Z0-9_]+|[A-Z]{1,5}[0-9]{3,10}",
        r"|[0-9a-f]{7,64}|[0-9A-F]{7,64}",
    ))
});

/// What says that the words behind it name a project.
pub(super) static PROJECT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?-u:\b)(?:",
        // The project is called Zeus; the project's name is Zeus.
        r"[Pp]roject,?(?: (?:is|was|will be))? (?:called|named|code-?named)",
        r"|[Pp]roject(?:['’]s)? name is",
        // Let's call the new project Zeus.
        r"|(?:[Cc]all|[Cc]alled|[Nn]ame|[Nn]amed|[Rr]ename|[Rr]enamed) (?:the|this|that|our|my)",
        r"(?: [a-z]+){0,2} project(?: to)?",
        r"|[Cc]ode-?named|[Cc]ode[ -]?name(?::| is)?",
        r"|[Pp]roject:?",
        r#") ["“'`*]{0,2}"#,
    ))
});

/// The Blue Whale project.
pub(super) static NAMED_PROJECT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?-u:\b)(?:[Tt]he|[Oo]ur) ",
        r"(?P<name>\p{Lu}[\p{L}0-9-]+(?: \p{Lu}[\p{L}0-9-]+){0,2}) project(?-u:\b)",
    ))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        let streets = STREETS.iter().map(|form| &form.pattern);
        let values: [&Regex; 9] =
            [&URL, &EMAIL, &UUID, &PHONE, &MONEY, &DATE, &ID, &PROJECT, &NAMED_PROJECT];
        let places: [&Regex; 4] = [&UNIT, &POSTCODE, &STATE, &CITY];
        for pattern in values.into_iter().chain(places).chain(streets) {
            assert!(!pattern.is_match(""), "{}", pattern.as_str());
        }
    }
}
