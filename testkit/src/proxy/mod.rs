//! A small TCP proxy that a test puts before a server, to break the wire between the two.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What the proxy does to the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: it forwards.
    Pass,
    /// Nothing listens: the system refuses new connections. Open ones stay.
    Gone,
    /// It takes new connections and closes them at once. Open ones stay.
    Refuse,
    /// A black hole: connections are taken and stay open, and nothing comes through until the fault
    /// changes. What was sent meanwhile arrives then.
    Stall,
    /// Each piece waits so long.
    Slow(Duration),
    /// Forwards as many bytes of clients from now on, then cuts every connection, then passes.
    CutAfter(u64),
    /// Forwards until a client sends this text, lets the server have that and answer it, swallows the
    /// answer and cuts every connection, then passes.
    DropAnswer(&'static str),
}

/// What the tasks of a proxy watch.
#[derive(Debug, Clone, Copy)]
struct State {
    fault: Fault,
    /// A connection ends when this is no longer what it was when the connection was made.
    cuts: u64,
    /// A connection falls silent when this is no longer what it was when the connection was made.
    freezes: u64,
    /// Bytes of clients since the fault was set.
    sent: u64,
}

type Shared = Arc<watch::Sender<State>>;

/// A proxy on a port of its own, which ends when it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: Shared,
    listening: JoinHandle<()>,
}

impl Proxy {
    /// A proxy of `target` that passes everything. It runs on the runtime that it is started in.
    ///
    /// # Panics
    /// When no port can be had.
    #[must_use]
    pub fn start(target: SocketAddr) -> Self {
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let state = State { fault: Fault::Pass, cuts: 0, freezes: 0, sent: 0 };
        let state = Arc::new(watch::Sender::new(state));
        let listening = tokio::spawn(accept(listener, target, Arc::clone(&state)));
        Self { address, state, listening }
    }

    /// Where clients connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Does this from now on, to open connections too.
    pub fn set(&self, fault: Fault) {
        self.state.send_modify(|state| (state.fault, state.sent) = (fault, 0));
    }

    /// Closes every open connection now.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }

    /// Nothing comes through the open connections ever again, and they stay open: what a firewall does
    /// that forgot them. New ones pass.
    pub fn freeze(&self) {
        self.state.send_modify(|state| state.freezes += 1);
    }

    /// What it does: a fault that strikes once is [`Fault::Pass`] after it struck.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.state.borrow().fault
    }

    /// How many bytes of clients were forwarded since the fault was set.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.state.borrow().sent
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
        self.cut();
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

async fn accept(listener: TcpListener, target: SocketAddr, state: Shared) {
    let mut watched = state.subscribe();
    let address = listener.local_addr().expect("a bound listener has an address");
    let mut listener = Some(listener);
    loop {
        let fault = watched.borrow_and_update().fault;
        if fault == Fault::Gone {
            listener = None;
        }
        let Some(listening) = &listener else {
            if watched.wait_for(|state| state.fault != Fault::Gone).await.is_err() {
                return;
            }
            listener = Some(listen(address).expect("the port is still ours"));
            continue;
        };
        let accepted = tokio::select! {
            changed = watched.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
            accepted = listening.accept() => accepted,
        };
        if let Ok((client, _)) = accepted
            && state.borrow().fault != Fault::Refuse
        {
            tokio::spawn(connection(client, target, Arc::clone(&state)));
        }
    }
}

/// Forwards both ways until one side ends or the connection is cut.
async fn connection(mut client: TcpStream, target: SocketAddr, state: Shared) {
    let mut watched = state.subscribe();
    let State { cuts, freezes, .. } = *watched.borrow();
    // Small answers are not held back to be sent together: the proxy adds no delay of its own.
    let _ = client.set_nodelay(true);
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    let _ = server.set_nodelay(true);
    let ((from_client, to_client), (from_server, to_server)) = (client.split(), server.split());
    let (swallow, swallowing) = watch::channel(false);
    tokio::select! {
        _ = watched.wait_for(|state| (state.cuts, state.freezes) != (cuts, freezes)) => {}
        _ = upwards(from_client, to_server, &state, &swallow) => return,
        _ = downwards(from_server, to_client, &state, swallowing) => return,
    }
    // Cut, or frozen until it is.
    let _ = watched.wait_for(|state| state.cuts != cuts).await;
}

/// Waits until something may come through; `None` when the proxy has ended.
async fn passable(state: &Shared) -> Option<Fault> {
    let mut watched = state.subscribe();
    let fault = watched.wait_for(|state| state.fault != Fault::Stall).await.ok()?.fault;
    if let Fault::Slow(delay) = fault {
        tokio::time::sleep(delay).await; // tidy: sleep: the delay is the fault that a test asked for
    }
    Some(fault)
}

/// From the client to the server.
async fn upwards(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    state: &Shared,
    swallow: &watch::Sender<bool>,
) -> Option<()> {
    let mut piece = vec![0; 16 * 1024];
    let mut seen = Vec::new();
    loop {
        let length = from.read(&mut piece).await.ok().filter(|length| *length > 0)?;
        let mut piece = &piece[..length];
        let fault = passable(state).await?;
        if let Fault::CutAfter(most) = fault {
            let left = most.saturating_sub(state.borrow().sent);
            piece = &piece[..length.min(usize::try_from(left).unwrap_or(length))];
        }
        if let Fault::DropAnswer(to) = fault {
            // The text may lie across two pieces.
            seen.extend_from_slice(piece);
            if seen.windows(to.len()).any(|part| part == to.as_bytes()) {
                swallow.send_replace(true);
            }
            seen.drain(..seen.len().saturating_sub(to.len()));
        }
        to.write_all(piece).await.ok()?;
        state.send_if_modified(|state| {
            state.sent += piece.len() as u64;
            false
        });
        if piece.len() < length || fault == Fault::CutAfter(state.borrow().sent) {
            strike(state);
            return None;
        }
    }
}

/// From the server to the client.
async fn downwards(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    state: &Shared,
    swallowing: watch::Receiver<bool>,
) -> Option<()> {
    let mut piece = vec![0; 16 * 1024];
    loop {
        let length = from.read(&mut piece).await.ok().filter(|length| *length > 0)?;
        if *swallowing.borrow() {
            strike(state);
            return None;
        }
        passable(state).await?;
        to.write_all(&piece[..length]).await.ok()?;
    }
}

/// A fault that strikes once: everything is cut, and what comes after passes.
fn strike(state: &Shared) {
    state.send_modify(|state| {
        state.cuts += 1;
        state.fault = Fault::Pass;
    });
}

#[cfg(test)]
mod tests;
