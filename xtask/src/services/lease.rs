//! Servers for the length of one run of the tests.

use super::{SERVICES, any_runs, down, up};
use crate::Result;

/// Servers that answer. Those that were started for it end with it, whatever the tests' outcome.
///
/// An interrupt from the keyboard ends this program before it can clean up: the servers stay, and
/// the next run finds them up.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) variables: Vec<(String, String)>,
    ours: bool,
}

impl Lease {
    /// Takes the servers that the environment names, if it names all; else brings up what is down.
    pub(crate) fn take() -> Result<Self> {
        if let Some(variables) = given(|name| std::env::var(name).ok()) {
            println!("The servers are those that the environment names.");
            return Ok(Self { variables, ours: false });
        }
        // If one runs, a person is using them.
        let ours = !any_runs()?;
        // From here on they are taken down, even when one of them does not come up.
        let mut lease = Self { variables: Vec::new(), ours };
        lease.variables = up()?;
        Ok(lease)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.ours
            && let Err(error) = down()
        {
            eprintln!("xtask: {error}; `cargo xtask services down` tries again");
        }
    }
}

/// Every variable with its value, or none: servers of two origins would be confusing.
fn given(value: impl Fn(&str) -> Option<String>) -> Option<Vec<(String, String)>> {
    let of = |name: &str| Some((name.to_owned(), value(name).filter(|value| !value.is_empty())?));
    SERVICES.iter().map(|service| of(service.variable)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_all_servers_or_none() {
        let all = given(|name| Some(format!("{name}-url"))).unwrap();
        assert_eq!(all.len(), SERVICES.len());
        assert!(all.iter().all(|(name, value)| *value == format!("{name}-url")));
        assert_eq!(given(|name| (!name.ends_with("REDIS")).then(|| "url".to_owned())), None);
        assert_eq!(given(|_| Some(String::new())), None);
    }
}
