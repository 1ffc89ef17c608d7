//! Collections: their names, their shape, and how one comes to be.

use qdrant_client::qdrant::vectors_config::Config;
use qdrant_client::qdrant::{
    CollectionInfo, CreateCollectionBuilder, CreateFieldIndexCollectionBuilder, Distance,
    FieldType, HnswConfigDiffBuilder, KeywordIndexParamsBuilder, ScalarQuantizationBuilder,
    UuidIndexParamsBuilder, VectorParamsBuilder, VectorsConfigBuilder,
};
use throughline_core::ports::VectorSpace;
use throughline_core::{Error, ErrorKind, Result};

use crate::errors::if_there;
use crate::place::{PLACE, SCOPE, TENANT, hash};
use crate::server::Server;

/// The vector of a point. It has a name, so that a point may be without one.
pub(crate) const VECTOR: &str = "unit";

/// What is kept and how. Part of every name: another layout makes other collections, which are
/// filled anew, and `keep_only` empties the old ones.
const LAYOUT: &[u8] = b"1";

/// Between the parts of a name; no part contains it, so that no prefix is part of another.
const SEPARATOR: char = '.';

/// Bytes of a space's id that are kept readable in a name.
const SLUG_BYTES: usize = 48;

/// Links of a point within its place: Qdrant's default for a graph.
const LINKS: u64 = 16;

/// The collection of a space: `prefix.slug.dimensions.hash`.
pub(crate) fn name(prefix: &str, space: &VectorSpace) -> String {
    let slug: String = space
        .id
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(SLUG_BYTES)
        .collect();
    let dimensions = space.dimensions as u64;
    let hash = hash("space", &[LAYOUT, space.id.as_bytes(), &dimensions.to_le_bytes()]);
    [prefix, &slug, &dimensions.to_string(), &hash.simple().to_string()]
        .join(&SEPARATOR.to_string())
}

/// The dimensions that a name of ours tells; `None` for a name that is not of this prefix.
pub(crate) fn dimensions_of(prefix: &str, name: &str) -> Option<u64> {
    let parts: Vec<&str> = name.split(SEPARATOR).collect();
    match parts[..] {
        [first, _, dimensions, _] if first == prefix => dimensions.parse().ok(),
        _ => None,
    }
}

/// Whether a collection has vectors of the dimensions and distance that its name promises.
pub(crate) fn check(info: &CollectionInfo, name: &str, dimensions: u64) -> Result<()> {
    let params = info.config.as_ref().and_then(|config| config.params.as_ref());
    let config = params.and_then(|params| params.vectors_config.as_ref()?.config.as_ref());
    if let Some(Config::ParamsMap(vectors)) = config
        && let Some(vector) = vectors.map.get(VECTOR)
        && vector.size == dimensions
        && vector.distance() == Distance::Cosine
    {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Corrupt,
        format!(
            "the Qdrant collection `{name}` does not have cosine vectors of {dimensions} \
             dimensions, so it was not created by Throughline: delete it, or set another \
             `qdrant.prefix`; nothing was written"
        ),
    ))
}

/// A collection as Qdrant describes it; `None` if it does not exist.
pub(crate) async fn info(server: &Server, name: &str) -> Result<Option<CollectionInfo>> {
    let answer = server.call("read a collection", server.client.collection_info(name)).await;
    Ok(if_there(answer)?.and_then(|answer| answer.result))
}

/// Makes a collection, unless another process has made it meanwhile, and checks it.
pub(crate) async fn make(server: &Server, name: &str, dimensions: u64) -> Result<()> {
    let made = create(server, name, dimensions).await;
    match info(server, name).await? {
        Some(info) => complete(server, name, dimensions, &info).await,
        None => Err(made.err().unwrap_or_else(|| vanished(name))),
    }
}

/// Checks a collection, and adds the indexes that it lacks: its maker may have ended before it had
/// made them.
pub(crate) async fn complete(
    server: &Server,
    name: &str,
    dimensions: u64,
    info: &CollectionInfo,
) -> Result<()> {
    check(info, name, dimensions)?;
    for field in [TENANT, SCOPE, PLACE] {
        if !info.payload_schema.contains_key(field) {
            let request = field_index(name, field);
            server.change("create an index", server.client.create_field_index(request)).await?;
        }
    }
    Ok(())
}

/// A collection that was there is not any more.
pub(crate) fn vanished(name: &str) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!(
            "the Qdrant collection `{name}` was deleted in the meantime: try again; its texts are \
             embedded again"
        ),
    )
}

async fn create(server: &Server, name: &str, dimensions: u64) -> Result<()> {
    let mut vectors = VectorsConfigBuilder::default();
    // Whole vectors are read from the disk, and only to order what their codes have found.
    vectors.add_named_vector_params(
        VECTOR,
        VectorParamsBuilder::new(dimensions, Distance::Cosine).on_disk(true),
    );
    let request = CreateCollectionBuilder::new(name)
        .vectors_config(vectors)
        .on_disk_payload(true)
        // No graph over all tenants, through which no search goes: one for each place that is too
        // large to be looked through.
        .hnsw_config(HnswConfigDiffBuilder::default().m(0).payload_m(LINKS))
        .quantization_config(ScalarQuantizationBuilder::default().quantile(0.99).always_ram(true));
    server.call("create a collection", server.client.create_collection(request)).await.map(|_| ())
}

/// Searches go by place. The other fields get no graphs of their own, of servers that know how to do
/// without: 1.17 and newer.
fn field_index(name: &str, field: &str) -> CreateFieldIndexCollectionBuilder {
    if field == TENANT {
        let params = KeywordIndexParamsBuilder::default().is_tenant(true).enable_hnsw(false);
        CreateFieldIndexCollectionBuilder::new(name, field, FieldType::Keyword)
            .field_index_params(params)
            .wait(true)
    } else {
        let params = UuidIndexParamsBuilder::default().enable_hnsw(field == PLACE);
        CreateFieldIndexCollectionBuilder::new(name, field, FieldType::Uuid)
            .field_index_params(params)
            .wait(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(id: &str, dimensions: usize) -> VectorSpace {
        VectorSpace { id: id.to_owned(), dimensions }
    }

    #[test]
    fn no_two_spaces_share_a_name() {
        let names = [
            name("throughline", &space("all-MiniLM-L6-v2@1", 384)),
            name("throughline", &space("all-minilm-l6-v2@1", 384)),
            name("throughline", &space("all-minilm-l6-v2/1", 384)),
            name("throughline", &space("all-minilm-l6-v2/1", 256)),
            name("other", &space("all-minilm-l6-v2/1", 256)),
        ];
        for (n, one) in names.iter().enumerate() {
            assert!(!names[..n].contains(one), "{one}");
            assert!(one.contains(".all-minilm-l6-v2-1."), "{one}");
        }
        assert!(name(&"p".repeat(64), &space(&"long ".repeat(99), usize::MAX)).len() < 255);
    }

    #[test]
    fn owns_only_collections_with_its_prefix() {
        let ours = name("mine", &space("model", 384));
        assert_eq!(dimensions_of("mine", &ours), Some(384));
        for (prefix, name) in [
            ("mine-too", ours.as_str()),
            ("min", &ours),
            ("mine", "mine"),
            ("mine", "mine.model.many.1234"),
            ("mine", "mine.model.384"),
            ("mine", "mine.model.384.12.34"),
        ] {
            assert_eq!(dimensions_of(prefix, name), None, "{prefix} {name}");
        }
    }
}
