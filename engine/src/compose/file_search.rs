//! Where the files of a call are searched.

use std::sync::Arc;

use throughline_core::Result;
use throughline_core::ports::{Embedder, FileSearch, IdGen};

use crate::config::{Config, FileSearchKind};

/// A search of files, and the kind of the jobs that delete what a crash left in it; `None` where a crash leaves nothing.
pub(super) type ChosenSearch = (Arc<dyn FileSearch>, Option<&'static str>);

/// The search of a configuration; `None` where it needs an embedder that could not be loaded, or what is not in this binary.
///
/// # Errors
/// `InvalidInput` when a server's search was not compiled in, or for settings that it cannot use.
pub(super) fn open(
    config: &Config,
    embedder: Option<Arc<dyn Embedder>>,
    ids: Arc<dyn IdGen>,
) -> Result<Option<ChosenSearch>> {
    #[cfg(not(feature = "qdrant"))]
    drop(ids);
    match config.files.search {
        FileSearchKind::InProcess => Ok(in_process(embedder).map(|search| (search, None))),
        #[cfg(feature = "openai")]
        FileSearchKind::OpenAi => {
            let hosted = super::providers::hosted_files(config)?;
            Ok(Some((hosted, Some("drop_file_stores_openai"))))
        }
        #[cfg(not(feature = "openai"))]
        FileSearchKind::OpenAi => Err(super::not_built("file search `openai`", "openai")),
        #[cfg(feature = "qdrant")]
        FileSearchKind::Qdrant => {
            let search = embedder.map(|embedder| super::qdrant::files(config, embedder, ids));
            let chosen = |search| (search, Some("drop_file_stores_qdrant"));
            Ok(search.transpose()?.map(chosen))
        }
        #[cfg(not(feature = "qdrant"))]
        FileSearchKind::Qdrant => Err(super::not_built("file search `qdrant`", "qdrant")),
    }
}

#[cfg(feature = "sqlite")]
fn in_process(embedder: Option<Arc<dyn Embedder>>) -> Option<Arc<dyn FileSearch>> {
    Some(Arc::new(throughline_store_sqlite::InProcessFiles::new(embedder)))
}

#[cfg(not(feature = "sqlite"))]
fn in_process(_: Option<Arc<dyn Embedder>>) -> Option<Arc<dyn FileSearch>> {
    None
}
