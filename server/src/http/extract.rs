//! Extractors of request parts; each error names the field.

use std::marker::PhantomData;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use throughline_core::ports::Idempotency;
use throughline_core::{Error, ErrorKind, Result};

use super::bodies::received;
use super::service::Service;
use crate::wire::problem::Failure;

/// Longest `Idempotency-Key`, in bytes.
const MAX_REPEAT_BYTES: usize = 255;

/// A JSON object. A struct alone would take an array of its fields' values as well.
pub(super) struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

struct Fields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// Objects, each of which is one.
pub(super) fn objects<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|Object(value)| value).collect())
}

/// A JSON body.
pub(super) struct Body<T> {
    /// Its content.
    pub value: T,
    /// Hash of its bytes.
    hash: [u8; 32],
}

impl<T: DeserializeOwned> FromRequest<Service> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &Service) -> Result<Self, Failure> {
        let kind = request.headers().get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            return Err(Failure::of_status(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                Error::invalid("the body must be JSON: send `Content-Type: application/json`"),
            ));
        }
        let bytes = received(&request)?;
        let mut reader = serde_json::Deserializer::from_slice(&bytes);
        let Object(value) = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
            let path = error.path().to_string();
            let at = if path == "." { String::new() } else { format!("{path}: ") };
            Error::invalid(format!("{at}{}", error.into_inner()))
        })?;
        reader.end().map_err(|_| Error::invalid("the body has extra data after its JSON value"))?;
        Ok(Self { value, hash: *blake3::hash(&bytes).as_bytes() })
    }
}

/// Parameters of the query.
pub(super) struct Params<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<Service> for Params<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Service) -> Result<Self, Failure> {
        let found = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        found.map(|query| Self(query.0)).map_err(|error| {
            let said = error.body_text();
            let what = said.strip_prefix("Failed to deserialize query string: ").unwrap_or(&said);
            Error::invalid(format!("query: {what}")).into()
        })
    }
}

/// Parts of the path.
pub(super) struct Named<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Service> for Named<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, service: &Service) -> Result<Self, Failure> {
        let found = Path::<T>::from_request_parts(parts, service).await;
        found.map(|path| Self(path.0)).map_err(|error| {
            let what = error.body_text();
            Error::new(ErrorKind::InvalidInput, format!("path: {what}")).into()
        })
    }
}

/// The `Idempotency-Key` of a call, where it has one.
pub(super) struct Repeat {
    key: Option<String>,
    target: String,
}

impl FromRequestParts<Service> for Repeat {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Service) -> Result<Self, Failure> {
        let key = parts.headers.get("idempotency-key").map(|value| {
            let key = value.to_str().unwrap_or_default();
            let visible = key.bytes().all(|byte| byte.is_ascii_graphic());
            if key.is_empty() || key.len() > MAX_REPEAT_BYTES || !visible {
                return Err(Error::invalid(format!(
                    "Idempotency-Key: 1 to {MAX_REPEAT_BYTES} visible ASCII characters"
                )));
            }
            Ok(key.to_owned())
        });
        let target = format!("{} {}", parts.method, parts.uri.path());
        Ok(Self { key: key.transpose()?, target })
    }
}

impl Repeat {
    /// What tells a repeat of this call from another one. Keys are of the scope and not of the path: one
    /// that is used for two calls is a conflict.
    pub(super) fn of<T>(&self, body: &Body<T>) -> Option<Idempotency> {
        let key = self.hash()?;
        let mut fingerprint = [0; 16];
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.target.as_bytes()).update(&[0]).update(&body.hash);
        fingerprint.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Some(Idempotency { key, fingerprint })
    }

    /// Hash of the key.
    pub(super) fn hash(&self) -> Option<[u8; 16]> {
        let hash = blake3::hash(self.key.as_ref()?.as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&hash.as_bytes()[..16]);
        Some(key)
    }
}
