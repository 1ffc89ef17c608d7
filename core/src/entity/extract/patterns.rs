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
            r"(?:[Jj]an(?:uary)?|[Ff]eb(?:ruary)?|[Mm]ar(?:ch)?|[Aa]pr(?:il)?|[Mm]ay|[Jj]une?",
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
        r"[A-ZÀ-ÖØ-ÞĀ-Ž][A-Za-zÀ-ÖØ-öø-ž'’-]*[a-zß-öø-ž]\.?"
    };
}

macro_rules! postcode {
    () => {
        r"(?:[0-9]{4,5}(?:-[0-9]{3,4})?|[A-Z]{1,2}[0-9][A-Z0-9]? [0-9][A-Z]{2})(?-u:\b)"
    };
}

/// City and postcode in either order: `4050-262 Porto`, `London NW1 6XE`, `Springfield, IL 62704`.
macro_rules! place {
    () => {
        concat!(
            "(?:,? ",
            postcode!(),
            "(?: ",
            capital!(),
            "){1,3}|,(?: ",
            capital!(),
            r"){1,3}(?:,? [A-Z]{2}(?-u:\b))?(?:,? ",
            postcode!(),
            ")?)?",
        )
    };
}

pub(super) static ADDRESS: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        // 12 N. Main Street, 350 5th Ave, Flat 4.
        r"(?-u:\b)[0-9]{1,5}[A-Za-z]?(?:[-/][0-9]{1,4})? ",
        r"(?:(?:[NSEW]\.?|[0-9]{1,3}(?:st|nd|rd|th)) )?(?:",
        capital!(),
        r" ){0,3}(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Place",
        r"|Pl|Square|Sq|Way|Terrace|Parkway|Pkwy|Highway|Hwy|Close|Crescent|Row|Alley|Quay",
        r"|Circle|Gardens|Broadway)(?-u:\b)\.?",
        r"(?:,? (?:Apt|Apartment|Suite|Unit|Flat|Floor)\.? ?[A-Za-z0-9-]{1,6}|,? #[0-9]{1,5})?",
        place!(),
        // Rua das Flores 12.
        r"|(?-u:\b)(?:Rua|Avenida|Av\.|Travessa|Largo|Praça|Calle|Carrer|Plaza|Paseo|Via|Viale",
        r"|Piazza|Corso|Rue|Ul\.|Ulica)(?: (?:d[aeo]s?|del|della|di|de la|",
        capital!(),
        r")){1,6},? (?:n\.?º ?)?[0-9]{1,5}[A-Za-z]?(?-u:\b)",
        place!(),
        // 12 Rue de la Paix.
        r"|(?-u:\b)[0-9]{1,4}(?: ?bis)?,? (?:[Rr]ue|[Aa]venue|[Bb]oulevard|[Pp]lace|[Cc]hemin",
        r"|[Ii]mpasse|[Aa]llée|[Qq]uai|[Cc]ours)(?: (?:d[eu]s?|de la|l[ae]s?))*",
        r"(?: (?:[ldLD]['’])?",
        capital!(),
        r"){1,4}",
        place!(),
        // Musterstraße 5.
        r"|[A-ZÀ-ÖØ-Þ][A-Za-zÀ-ÖØ-öø-ÿ-]*(?:straße|strasse|str\.|weg|platz|allee|gasse|damm|ufer|gracht|straat",
        r"|laan|plein|kade) [0-9]{1,4} ?[a-z]?(?-u:\b)",
        place!(),
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
        // Advisories and tickets, addresses of hosts, versions, error codes, hashes.
        r"|[A-Z]{2,10}-[0-9]{4}-[0-9]{3,7}|[A-Z][A-Z0-9]{1,9}-[0-9]{1,7}",
        r"|[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]{1,5}|/[0-9]{1,2})?",
        r"|v?[0-9]+\.[0-9]+\.[0-9]+(?:-[0-9A-Za-z]+(?:\.[0-9A-Za-z]+)*)?(?:\+[0-9A-Za-z.]+)?",
        r"|v[0-9]+(?:\.[0-9]+)+",
        r"|0x[0-9A-Fa-f]{4,16}|(?:ERR|ERROR)_[A-Z0-9_]+|[A-Z]{1,5}[0-9]{3,6}",
        r"|[0-9a-f]{7,64}|[0-9A-F]{7,64}",
    ))
});

macro_rules! named {
    () => {
        r"\p{Lu}[\p{L}0-9-]+(?: \p{Lu}[\p{L}0-9-]+){0,2}"
    };
}

pub(super) static PROJECT: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"(?-u:\b)[Pp]roject (?:(?:called|named|code-?named) )?(?P<after>",
        named!(),
        r")|(?-u:\b)[Cc]ode-?name[d:]? (?P<code>",
        named!(),
        r")|(?-u:\b)(?:[Tt]he|[Oo]ur|[Mm]y) (?P<before>",
        named!(),
        r") project(?-u:\b)",
    ))
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for pattern in [&URL, &EMAIL, &UUID, &PHONE, &MONEY, &DATE, &ADDRESS, &ID, &PROJECT] {
            assert!(!pattern.is_match(""), "{}", pattern.as_str());
        }
    }
}
