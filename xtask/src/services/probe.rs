//! Asks a server on this machine whether it would serve.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// Loopback answers at once, or the server is busy with something else.
const PATIENCE: Duration = Duration::from_secs(1);

/// The first bytes that the server sends for the request; none when it does not answer.
pub(super) fn answer<const N: usize>(port: u16, request: &[u8]) -> Option<[u8; N]> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(request).ok()?;
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).ok()?;
    // What is left unread would be a broken connection in the server's log.
    let _ = stream.shutdown(Shutdown::Write);
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_the_server_sends_is_returned() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4];
            stream.read_exact(&mut request).unwrap();
            stream.write_all(b"+PONG\r\n").unwrap();
            request
        });
        assert_eq!(answer(port, b"PING"), Some(*b"+PONG"));
        assert_eq!(server.join().unwrap(), *b"PING");
    }

    #[test]
    fn a_closed_port_does_not_answer() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        assert_eq!(answer::<1>(port, b"PING"), None);
    }
}
