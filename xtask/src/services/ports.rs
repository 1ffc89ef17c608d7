//! Which ports the servers listen on.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;

use super::random;
use crate::Result;

/// Below the ports that Linux gives to outgoing connections, above those of installed servers.
const RANGE: Range<u16> = 20_000..32_000;

/// Ports that nothing listens on, all different.
pub(super) fn free(count: usize) -> Result<impl Iterator<Item = u16>> {
    // Not always the same ones: two checkouts may bring theirs up at the same moment.
    let start = u16::from_le_bytes(random()?);
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let ports = choose(start, count, free).ok_or("no free port from 20000 to 32000")?;
    Ok(ports.into_iter())
}

/// A port for a program that cannot choose one itself.
pub(crate) fn free_port() -> Result<u16> {
    free(1)?.next().ok_or_else(|| "no free port".into())
}

/// The first free ports from a place in the range on, around its end.
fn choose(start: u16, count: usize, is_free: impl Fn(&u16) -> bool) -> Option<Vec<u16>> {
    let all = RANGE.cycle().skip(usize::from(start) % RANGE.len()).take(RANGE.len());
    let ports: Vec<_> = all.filter(is_free).take(count).collect();
    (ports.len() == count).then_some(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_ports_are_passed_over() {
        assert_eq!(choose(0, 3, |port| port % 2 == 1), Some(vec![20_001, 20_003, 20_005]));
    }

    #[test]
    fn the_search_goes_around_the_end() {
        assert_eq!(choose(11_999, 2, |_| true), Some(vec![31_999, 20_000]));
        assert_eq!(choose(12_000, 1, |_| true), Some(vec![20_000]));
        assert_eq!(choose(u16::MAX, 1, |port| *port == 20_000), Some(vec![20_000]));
    }

    #[test]
    fn too_few_are_none() {
        assert_eq!(choose(5, 2, |port| *port == 25_000), None);
        assert_eq!(choose(5, 0, |_| false), Some(Vec::new()));
    }

    #[test]
    fn chosen_ports_can_be_bound() {
        let ports: Vec<_> = free(4).unwrap().collect();
        assert_eq!(ports.len(), 4);
        assert!(ports.iter().all(|port| RANGE.contains(port)));
    }
}
