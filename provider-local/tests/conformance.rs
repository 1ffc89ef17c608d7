//! The static table passes the table that every embedder passes.

use throughline_provider_local::StaticEmbedder;
use throughline_testkit::conformance;

#[tokio::test]
async fn the_static_embedder_conforms() {
    conformance::embedder(async || StaticEmbedder::bundled().unwrap(), &[]).await;
}
