//! Each fault against a server that sends back what it gets.

use std::time::Instant;

use super::*;

/// A server that sends back what it gets.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    address
}

async fn client(proxy: &Proxy) -> TcpStream {
    TcpStream::connect(proxy.address()).await.unwrap()
}

/// What comes back of a text: all of it, or what came before the end.
async fn said(stream: &mut TcpStream, text: &str) -> String {
    let mut back = Vec::new();
    if stream.write_all(text.as_bytes()).await.is_ok() {
        let mut byte = [0];
        while back.len() < text.len() && matches!(stream.read(&mut byte).await, Ok(1)) {
            back.push(byte[0]);
        }
    }
    String::from_utf8(back).unwrap()
}

/// Whether a text gets no answer, and the connection stays open.
async fn silent(stream: &mut TcpStream) -> bool {
    tokio::time::timeout(Duration::from_millis(80), said(stream, "x")).await.is_err()
}

#[tokio::test]
async fn it_passes_and_counts() {
    let proxy = Proxy::start(echo().await);
    let mut stream = client(&proxy).await;
    assert_eq!(said(&mut stream, "hello").await, "hello");
    assert_eq!((proxy.sent(), proxy.fault()), (5, Fault::Pass));
    let long = "0123456789".repeat(20_000);
    let (mut from, mut to) = stream.split();
    let mut back = vec![0; long.len()];
    let (sent, read) = tokio::join!(to.write_all(long.as_bytes()), from.read_exact(&mut back));
    sent.unwrap();
    read.unwrap();
    assert!(back == long.as_bytes(), "both ways at once, in order");
}

#[tokio::test]
async fn it_cuts_what_is_open_and_takes_what_comes() {
    let proxy = Proxy::start(echo().await);
    let (mut one, mut two) = (client(&proxy).await, client(&proxy).await);
    assert_eq!(said(&mut one, "a").await + &said(&mut two, "b").await, "ab");
    proxy.cut();
    assert_eq!(said(&mut one, "a").await + &said(&mut two, "b").await, "");
    assert_eq!(said(&mut client(&proxy).await, "c").await, "c");
}

#[tokio::test]
async fn it_refuses_and_goes_and_comes_back() {
    let proxy = Proxy::start(echo().await);
    let mut open = client(&proxy).await;
    assert_eq!(said(&mut open, "a").await, "a");
    proxy.set(Fault::Refuse);
    assert_eq!(said(&mut client(&proxy).await, "b").await, "");
    assert_eq!(said(&mut open, "c").await, "c");
    proxy.set(Fault::Gone);
    // It takes a moment until nothing listens.
    while TcpStream::connect(proxy.address()).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(said(&mut open, "d").await, "d");
    proxy.set(Fault::Pass);
    let mut back = loop {
        if let Ok(stream) = TcpStream::connect(proxy.address()).await {
            break stream;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(said(&mut back, "e").await, "e");
}

#[tokio::test]
async fn it_stalls_and_goes_on() {
    let proxy = Proxy::start(echo().await);
    let mut open = client(&proxy).await;
    assert_eq!(said(&mut open, "a").await, "a");
    proxy.set(Fault::Stall);
    assert!(silent(&mut open).await);
    assert!(silent(&mut client(&proxy).await).await, "taken, and silent");
    proxy.set(Fault::Pass);
    let mut held = [0];
    open.read_exact(&mut held).await.unwrap();
    assert_eq!(held, *b"x", "what was held back arrives");
}

#[tokio::test]
async fn it_freezes_what_is_open_and_takes_what_comes() {
    let proxy = Proxy::start(echo().await);
    let mut open = client(&proxy).await;
    assert_eq!(said(&mut open, "a").await, "a");
    proxy.freeze();
    assert!(silent(&mut open).await);
    assert_eq!(said(&mut client(&proxy).await, "b").await, "b");
    proxy.cut();
    assert_eq!(said(&mut open, "c").await, "");
}

#[tokio::test]
async fn it_is_slow() {
    let proxy = Proxy::start(echo().await);
    let mut stream = client(&proxy).await;
    proxy.set(Fault::Slow(Duration::from_millis(20)));
    let begun = Instant::now();
    assert_eq!(said(&mut stream, "a").await, "a");
    assert!(begun.elapsed() >= Duration::from_millis(40), "each way is slow");
}

#[tokio::test]
async fn it_cuts_after_as_many_bytes() {
    for most in 0..6 {
        let proxy = Proxy::start(echo().await);
        let mut stream = client(&proxy).await;
        assert_eq!(said(&mut stream, "abc").await, "abc");
        proxy.set(Fault::CutAfter(most));
        // Of the answer, what was on its way at the cut may be lost.
        let back = said(&mut stream, "012345").await;
        assert!("012345"[..most as usize].starts_with(&back), "{most}: {back}");
        assert_eq!(proxy.fault(), Fault::Pass);
        assert_eq!(said(&mut client(&proxy).await, "again").await, "again");
    }
}

#[tokio::test]
async fn it_drops_an_answer() {
    let target = echo().await;
    let proxy = Proxy::start(target);
    let (mut stream, mut other) = (client(&proxy).await, client(&proxy).await);
    assert_eq!(said(&mut other, "a").await, "a");
    proxy.set(Fault::DropAnswer("COMMIT"));
    assert_eq!(said(&mut stream, "BEGIN; COM").await, "BEGIN; COM");
    assert_eq!(said(&mut stream, "MIT").await, "", "the text may come in two pieces");
    assert_eq!(said(&mut other, "b").await, "", "every connection is cut");
    assert_eq!(said(&mut client(&proxy).await, "COMMIT").await, "COMMIT", "it strikes once");
}
