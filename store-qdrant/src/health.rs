//! The health of the server.

use std::ops::RangeInclusive;

use qdrant_client::qdrant::CollectionStatus;
use throughline_core::{ErrorKind, Result};

use crate::collection;
use crate::index::QdrantIndex;

/// Minor versions of Qdrant 1 that the driver speaks with. Watermarks need 1.16: an older server
/// takes no heed of the condition under which they move.
const SUPPORTED: RangeInclusive<u32> = 16..=18;

/// The state of the server and of the collections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QdrantHealth {
    /// Version of the server; `None` while it is away.
    pub version: Option<String>,
    /// The problems, in sentences for an operator; empty if there are none.
    pub problems: Vec<String>,
}

impl QdrantIndex {
    /// Asks the server for its version and for the state of each collection of the prefix. A server
    /// that is away is a problem, not an error.
    ///
    /// # Errors
    /// What Qdrant refuses for no reason that is known.
    pub async fn health(&self) -> Result<QdrantHealth> {
        let mut health = QdrantHealth::default();
        match self.examine(&mut health).await {
            Err(error) if error.kind() == ErrorKind::Internal => Err(error),
            Err(error) => {
                health.problems.push(error.message().to_owned());
                Ok(health)
            }
            Ok(()) => Ok(health),
        }
    }

    async fn examine(&self, health: &mut QdrantHealth) -> Result<()> {
        let server = self.server();
        let version = server.call("ask for health", server.client.health_check()).await?.version;
        health.problems.extend(version_problem(&version));
        health.version = Some(version);
        let mut names = self.collections().await?;
        names.sort_unstable();
        for name in names {
            let dimensions = collection::dimensions_of(self.prefix(), &name);
            // A collection that was deleted since it was listed is not a problem.
            if let Some(info) = collection::info(server, &name).await?
                && let Some(dimensions) = dimensions
            {
                health.problems.extend(status_problem(&name, info.status()));
                let shape = collection::check(&info, &name, dimensions);
                health.problems.extend(shape.err().map(|error| error.message().to_owned()));
            }
        }
        Ok(())
    }
}

fn version_problem(version: &str) -> Option<String> {
    let mut parts = version.split('.');
    let minor = (parts.next() == Some("1")).then(|| parts.next()?.parse::<u32>().ok()).flatten();
    if minor.is_some_and(|minor| SUPPORTED.contains(&minor)) {
        return None;
    }
    let (first, last) = (SUPPORTED.start(), SUPPORTED.end());
    Some(format!("Qdrant {version} is not supported: run one of 1.{first} to 1.{last}"))
}

fn status_problem(name: &str, status: CollectionStatus) -> Option<String> {
    let state = match status {
        CollectionStatus::Green => return None,
        CollectionStatus::Yellow => "is being optimized: searches are slower until it is done",
        CollectionStatus::Grey => {
            "has been waiting to be optimized since the server started: write to it, or update its \
             optimizer settings, to start the optimization"
        }
        CollectionStatus::Red => "has failed: check the server's log",
        CollectionStatus::UnknownCollectionStatus => "is in an unknown state",
    };
    Some(format!("the Qdrant collection `{name}` {state}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_out_of_range_are_problems() {
        for version in ["1.16.3", "1.17.0-dev", "1.18"] {
            assert_eq!(version_problem(version), None, "{version}");
        }
        for version in ["1.15.9", "1.19.0", "2.16.0", "0.16.1", "1", "", "new"] {
            let problem = version_problem(version).unwrap();
            assert!(problem.contains(version) && problem.contains("1.16 to 1.18"), "{problem}");
        }
    }

    #[test]
    fn only_green_is_no_problem() {
        assert_eq!(status_problem("c", CollectionStatus::Green), None);
        for status in [CollectionStatus::Yellow, CollectionStatus::Red, CollectionStatus::Grey] {
            assert!(status_problem("c", status).is_some_and(|problem| problem.contains("`c`")));
        }
    }
}
