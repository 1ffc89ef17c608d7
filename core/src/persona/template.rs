//! Templates: starting points for common uses, which become a persona or a preset once their fields are filled in.

use std::collections::BTreeMap;

use super::rules::text;
use super::{Overrides, Settings};
use crate::error::{Error, Result};

/// Longest value of a field, in bytes.
pub const MAX_FIELD_BYTES: usize = 1_000;

/// A part of a template that its user fills in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateField {
    /// Its name.
    pub name: &'static str,
    /// What to fill in.
    pub description: &'static str,
    /// What stands there where nothing is filled in; without one the field is required.
    pub default: Option<&'static str>,
}

/// A starting point. Prompt and personality have `{field}` where a field goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Template {
    /// Its id.
    pub id: &'static str,
    /// A name for people.
    pub name: &'static str,
    /// Its use.
    pub description: &'static str,
    /// Its fields.
    pub fields: &'static [TemplateField],
    /// The system prompt.
    pub system_prompt: &'static str,
    /// The personality.
    pub personality: &'static str,
    /// Diversity of answers.
    pub temperature: f64,
}

/// A template with its fields filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct FilledTemplate {
    /// See [`Template::name`].
    pub name: String,
    /// See [`Template::description`].
    pub description: String,
    /// The system prompt.
    pub system_prompt: String,
    /// The personality.
    pub personality: String,
    /// What it sets, or what is said instead.
    pub settings: Overrides,
}

const fn required(name: &'static str, description: &'static str) -> TemplateField {
    TemplateField { name, description, default: None }
}

const fn optional(
    name: &'static str,
    description: &'static str,
    default: &'static str,
) -> TemplateField {
    TemplateField { name, description, default: Some(default) }
}

/// The templates, always in the same order.
pub const TEMPLATES: [Template; 6] = [
    Template {
        id: "template-interview-practice",
        name: "Interview Practice",
        description: "Practises job interviews and gives feedback on each answer",
        fields: &[
            required("position", "The position that the user applies for"),
            optional("company", "The company", "the company"),
            optional(
                "focus",
                "What to practise, such as behavioural questions",
                "the whole interview",
            ),
        ],
        system_prompt: "You are an interviewer of {company} for the position: {position}. Ask one question at a time, as in \
             a real interview. Practise {focus}. After each answer say briefly what was good and what to improve, then ask \
             the next question.",
        personality: "Friendly, demanding and fair; honest about weak answers",
        temperature: 0.7,
    },
    Template {
        id: "template-language-tutor",
        name: "Language Tutor",
        description: "Talks with a learner in the language that they learn, and corrects them",
        fields: &[
            required("language", "The language to learn"),
            optional("level", "The learner's level, such as A2", "beginner"),
            optional("explain_in", "The language of explanations", "English"),
        ],
        system_prompt: "You are a tutor of {language} for a learner of the level {level}. Talk with them in {language}, in \
             words of their level. Correct their mistakes after each message, with a short explanation in {explain_in}, \
             and end with a question that keeps the conversation going.",
        personality: "Patient, encouraging and exact",
        temperature: 0.7,
    },
    Template {
        id: "template-code-reviewer",
        name: "Code Reviewer",
        description: "Reviews code and explains what to change",
        fields: &[
            required("language", "The programming language"),
            optional("focus", "What matters most", "correctness, then readability"),
            optional(
                "conventions",
                "The conventions of the project",
                "the usual ones of the language",
            ),
        ],
        system_prompt: "You are an experienced reviewer of {language} code. What matters most is {focus}. The conventions \
             are: {conventions}. Name the most serious problems first, each with its place, why it is a problem, and a \
             change that solves it. Do not praise, and do not repeat the code.",
        personality: "Precise, calm and respectful",
        temperature: 0.2,
    },
    Template {
        id: "template-writing-editor",
        name: "Writing Editor",
        description: "Edits texts for their readers without changing what they say",
        fields: &[
            required("kind", "The kind of text, such as a project report"),
            required("readers", "Who will read it"),
            optional("tone", "How it should sound", "clear and plain"),
        ],
        system_prompt: "You are an editor. The user writes this kind of text: {kind}. Its readers are: {readers}. The tone \
             is {tone}. Improve structure, sentences and words, keep what is said and every fact, and then list the \
             changes that matter in a few lines. Ask where a sentence has two meanings.",
        personality: "Attentive and direct",
        temperature: 0.4,
    },
    Template {
        id: "template-study-coach",
        name: "Study Coach",
        description: "Helps to learn a subject towards a goal",
        fields: &[
            required("subject", "What to learn"),
            required("goal", "What to reach, and by when"),
            optional("time", "How much time there is", "half an hour a day"),
        ],
        system_prompt: "You are a coach who helps the user to learn {subject}. The goal: {goal}. The time there is: {time}. \
             Plan small steps, explain each with an example, check with questions whether it was understood, and come \
             back to what was wrong before.",
        personality: "Structured and motivating, without flattery",
        temperature: 0.6,
    },
    Template {
        id: "template-role-play",
        name: "Role Play",
        description: "Plays another person, to prepare a difficult conversation",
        fields: &[
            required("person", "Whom to play, such as a customer whose delivery is late"),
            required("situation", "What the conversation is about"),
            optional(
                "difficulty",
                "How hard the person is to convince",
                "reasonable, but not easy to convince",
            ),
        ],
        system_prompt: "You play this person: {person}. The situation: {situation}. The person is {difficulty}. Stay in the \
             role and answer as that person would. Only if the user writes \"stop\", leave the role and say what went \
             well and what to try instead.",
        personality: "Believable and consistent",
        temperature: 0.8,
    },
];

impl Template {
    /// The template under an id.
    ///
    /// # Errors
    /// `NotFound` with the templates that there are.
    pub fn of(id: &str) -> Result<&'static Self> {
        TEMPLATES.iter().find(|template| template.id == id).ok_or_else(|| {
            let ids = TEMPLATES.map(|template| template.id).join(", ");
            Error::not_found(format!("there is no template with this id; available: {ids}"))
        })
    }

    /// The template with its fields filled in, and with what is said in place of its settings.
    ///
    /// # Errors
    /// `InvalidInput` that names the fields that are missing, unknown or too long.
    pub fn filled(
        &self,
        fields: &BTreeMap<String, String>,
        said: Overrides,
    ) -> Result<FilledTemplate> {
        if let Some(unknown) =
            fields.keys().find(|name| !self.fields.iter().any(|field| field.name == **name))
        {
            let known: Vec<&str> = self.fields.iter().map(|field| field.name).collect();
            return Err(Error::invalid(format!(
                "fields.{unknown}: is not a field of {}: use {}",
                self.id,
                known.join(", ")
            )));
        }
        let mut values = BTreeMap::new();
        let mut missing = Vec::new();
        for field in self.fields {
            match (fields.get(field.name), field.default) {
                (Some(value), _) => {
                    let place = format!("fields.{}", field.name);
                    values.insert(field.name, text(&place, value, 1, MAX_FIELD_BYTES)?);
                }
                (None, Some(default)) => drop(values.insert(field.name, default.to_owned())),
                (None, None) => missing.push(format!("{} ({})", field.name, field.description)),
            }
        }
        if !missing.is_empty() {
            return Err(Error::invalid(format!(
                "fields: {} needs {}",
                self.id,
                missing.join(", ")
            )));
        }
        let temperature = said.temperature.or(Some(self.temperature));
        Settings::default().with(&Overrides { temperature, ..said })?;
        Ok(FilledTemplate {
            name: self.name.to_owned(),
            description: self.description.to_owned(),
            system_prompt: fill(self.system_prompt, &values),
            personality: fill(self.personality, &values),
            settings: Overrides { temperature, ..said },
        })
    }
}

/// Puts values in place in one pass, so that nothing in a value is taken for a field.
fn fill(text: &str, values: &BTreeMap<&str, String>) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        match after.split_once('}').and_then(|(name, after)| Some((values.get(name)?, after))) {
            Some((value, after)) => {
                filled.push_str(value);
                rest = after;
            }
            None => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled.push_str(rest);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::persona::findings;
    use crate::tokens::Tokenizer;

    struct Words;

    impl Tokenizer for Words {
        fn name(&self) -> &str {
            "words"
        }

        fn is_exact(&self) -> bool {
            true
        }

        fn count(&self, text: &str) -> u32 {
            u32::try_from(text.split_whitespace().count()).unwrap()
        }
    }

    fn fields(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn every_template_is_filled_whole_and_has_a_good_prompt() {
        for template in TEMPLATES {
            let all: Vec<(&str, &str)> =
                template.fields.iter().map(|field| (field.name, "{goal} of mine")).collect();
            let filled = template.filled(&fields(&all), Overrides::default()).unwrap();
            for field in template.fields {
                let place = format!("{{{}}}", field.name);
                let told = template.system_prompt.contains(&place);
                assert!(told, "{}: {} is used", template.id, field.name);
            }
            let left = filled.system_prompt.matches('{').count();
            assert_eq!(left, filled.system_prompt.matches("{goal} of mine").count(), "{filled:?}");
            let settings = Settings::default().with(&filled.settings).unwrap();
            let found = findings(&filled.system_prompt, &filled.personality, &settings, &Words);
            assert_eq!(found, [], "{}", template.id);
        }
    }

    #[test]
    fn what_is_wrong_with_fields_is_named() {
        let tutor = Template::of("template-language-tutor").unwrap();
        let said = Overrides { temperature: Some(0.1), ..Overrides::default() };
        let filled = tutor.filled(&fields(&[("language", " Dutch ")]), said).unwrap();
        assert!(filled.system_prompt.starts_with("You are a tutor of Dutch for a learner"));
        assert!(filled.system_prompt.contains("beginner"), "a default stands");
        assert_eq!(filled.settings.temperature, Some(0.1));
        for (given, what) in [
            (fields(&[]), "language (The language to learn)"),
            (fields(&[("language", "Dutch"), ("accent", "x")]), "fields.accent: "),
            (fields(&[("language", " ")]), "fields.language: "),
            (fields(&[("language", &"x".repeat(1_001))]), "fields.language: "),
        ] {
            let error = tutor.filled(&given, Overrides::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.message().contains(what), "{error}");
        }
        let error = Template::of("template-none").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("template-role-play"), "{error}");
    }
}
