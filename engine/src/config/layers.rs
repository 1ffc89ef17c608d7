//! The layers that configuration is read from, which of them a value is from, and what is wrong with one.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use figment::error::Kind;
use figment::providers::{Env, Format, Serialized, Toml};
use figment::value::{Dict, Value};
use figment::{Figment, Source};
use serde::Serialize;
use throughline_core::{Error, Result};
use url::Url;

use super::{Config, DEFAULT_FILE, ENV_PREFIX, SHARED_VARIABLES, secret};

/// Where configuration comes from.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// `--config`; a file that is named must exist.
    pub file: Option<PathBuf>,
    /// `--set key=value`, in order.
    pub flags: Vec<(String, String)>,
}

/// One key, its value, and the layer that it is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// Dotted key.
    pub key: String,
    /// Value, as TOML writes it.
    pub value: String,
    /// Layer, such as `default` or `throughline.toml`.
    pub layer: String,
}

impl Layers {
    /// Reads all layers.
    ///
    /// # Errors
    /// `InvalidInput` that names key and layer and what is allowed.
    pub fn load(&self) -> Result<Config> {
        let config: Config = self.figment()?.extract().map_err(|error| explain_error(&error))?;
        config.check()
    }

    /// Every key with its value and layer.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn explain(&self) -> Result<Vec<Explained>> {
        let figment = self.figment()?;
        let config: Config = figment.extract().map_err(|error| explain_error(&error))?;
        let config = config.check()?;
        let value = Value::serialize(config).map_err(|error| explain_error(&error))?;
        let mut explained = Vec::new();
        for key in leaf_keys("", &value) {
            let layer = figment.find_metadata(&key).map_or("default".to_owned(), |metadata| {
                layer_name(&metadata.name, metadata.source.as_ref())
            });
            let value = value.clone().find(&key).map_or(String::new(), |value| show(&value));
            explained.push(Explained { key, value, layer });
        }
        Ok(explained)
    }

    pub(super) fn figment(&self) -> Result<Figment> {
        let mut figment = Figment::from(Serialized::defaults(Config::default()));
        // What other programs read as well counts where nothing of ours is set.
        let shared = Env::raw().only(&SHARED_VARIABLES).map(|name| {
            // `OPENAI_API_KEY` is `providers.openai.api_key`.
            let name = name.as_str().to_lowercase();
            format!("providers.{}", name.replacen('_', ".", 1)).into()
        });
        figment = figment.merge(shared.split("."));
        let file = self.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
        if self.file.is_some() && !file.is_file() {
            return Err(Error::not_found(format!("{} does not exist", file.display())));
        }
        if file.is_file() {
            figment = figment.merge(Toml::file_exact(file));
        }
        // `cargo xtask services up` exports variables for tests in the same shell.
        let environment = Env::prefixed(ENV_PREFIX).filter(|key| !key.starts_with("TEST_"));
        figment = figment.merge(environment.split("__"));
        for (key, value) in &self.flags {
            // A value is TOML where it can be, else text: `--set sqlite.readers=8`.
            let value: Value = value.parse().unwrap_or_else(|never| match never {});
            figment = figment.merge(NamedFlag(Serialized::default(key, value)));
        }
        Ok(figment)
    }
}

/// A flag as a layer of its own name.
struct NamedFlag(Serialized<Value>);

impl figment::Provider for NamedFlag {
    fn metadata(&self) -> figment::Metadata {
        figment::Metadata::named("flag")
    }

    fn data(
        &self,
    ) -> std::result::Result<figment::value::Map<figment::Profile, Dict>, figment::Error> {
        self.0.data()
    }
}

pub(super) fn leaf_keys(prefix: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Dict(_, dict) => dict
            .iter()
            .flat_map(|(key, value)| {
                let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                leaf_keys(&path, value)
            })
            .collect(),
        _ => vec![prefix.to_owned()],
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::String(_, text) => format!("{:?}", without_password(text)),
        Value::Num(_, number) => match (number.to_u128(), number.to_f64()) {
            (Some(whole), _) => whole.to_string(),
            (None, Some(decimal)) => format!("{decimal:?}"),
            (None, None) => format!("{number:?}"),
        },
        Value::Bool(_, flag) => flag.to_string(),
        other => format!("{other:?}"),
    }
}

/// A URL with what stands for a secret in the place of who it names, of their password, and of its query and fragment;
/// another text as it is.
fn without_password(text: &str) -> Cow<'_, str> {
    match Url::parse(text) {
        Ok(url) if url.has_host() && !url.path().contains('@') => hidden(url, text),
        // A password whose characters are not escaped makes no URL, or another one.
        _ => {
            let (scheme, rest) = text.split_at(text.find("://").map_or(0, |at| at + 3));
            match rest.rfind('@').filter(|at| !scheme.is_empty() || rest[..*at].contains(':')) {
                Some(at) => format!("{scheme}{}{}", secret::SHOWN, &rest[at..]).into(),
                None => text.into(),
            }
        }
    }
}

fn hidden(mut url: Url, text: &str) -> Cow<'_, str> {
    let named = !url.username().is_empty() || url.password().is_some();
    if !named && url.query().is_none() && url.fragment().is_none() {
        return text.into();
    }
    if named && url.set_username(secret::SHOWN).and_then(|()| url.set_password(None)).is_err() {
        return secret::SHOWN.into();
    }
    let shown = |part: Option<&str>| part.map(|_| secret::SHOWN);
    let (query, fragment) = (shown(url.query()), shown(url.fragment()));
    url.set_query(query);
    url.set_fragment(fragment);
    url.to_string().into()
}

fn layer_name(name: &str, source: Option<&Source>) -> String {
    match source {
        Some(Source::File(path)) => path.display().to_string(),
        _ if name.contains("environment") => "environment".to_owned(),
        _ if name == "flag" => "flag".to_owned(),
        _ => "default".to_owned(),
    }
}

pub(super) fn explain_error(error: &figment::Error) -> Error {
    let layer = error.metadata.as_ref().map_or(String::new(), |metadata| {
        format!(" ({})", layer_name(&metadata.name, metadata.source.as_ref()))
    });
    let path = error.path.join(".");
    let message = match &error.kind {
        Kind::UnknownField(field, known) => {
            // The field may be the last part of the path or follow it, by the layer.
            let full = match path.as_str() {
                "" => field.clone(),
                path if path == field || path.ends_with(&format!(".{field}")) => path.to_owned(),
                path => format!("{path}.{field}"),
            };
            // A key of another section: `http.listen` is `listen`.
            let all = Value::serialize(Config::default()).map(|all| leaf_keys("", &all));
            let elsewhere = all
                .unwrap_or_default()
                .into_iter()
                .filter(|key| key.rsplit('.').next() == Some(field.as_str()))
                .min_by_key(|key| key.matches('.').count());
            if let Some(elsewhere) = elsewhere {
                return Error::invalid(format!(
                    "unknown configuration key `{full}`{layer}: did you mean `{elsewhere}`?"
                ));
            }
            let nearest = known
                .iter()
                .max_by(|a, b| {
                    strsim::jaro_winkler(a, field).total_cmp(&strsim::jaro_winkler(b, field))
                })
                .map_or(String::new(), |nearest| format!(": did you mean `{nearest}`?"));
            format!("unknown configuration key `{full}`{layer}{nearest}")
        }
        Kind::Message(text) if path.is_empty() => {
            // The reader of TOML says it over several lines: where, the line itself, and what.
            let mut lines = text.lines().filter(|line| !line.trim().is_empty());
            let (first, last) = (lines.next().unwrap_or_default(), lines.next_back());
            let what = last.map_or(String::new(), |last| format!(": {}", last.trim()));
            format!("the configuration{layer} cannot be read: {first}{what}")
        }
        kind => format!("configuration key `{path}`{layer}: {kind}"),
    };
    Error::invalid(message)
}
