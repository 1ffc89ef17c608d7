//! The connection of this process: made by the first call, replaced when it breaks, and never waited
//! for without an end.

use std::io;
use std::sync::Once;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ErrorKind, RedisError, RedisResult, Script,
    ServerErrorKind, Value,
};
use throughline_core::Result;
use tokio::sync::Mutex;

use crate::errors::driver_error;
use crate::options::RedisOptions;

/// After a connection could not be made, calls fail at once for so long: a server that does not even
/// refuse would hold up every one of them.
const PAUSE: Duration = Duration::from_secs(1);

/// One connection, over which calls at once follow each other without waiting.
pub(crate) struct Link {
    client: Client,
    timeout: Duration,
    connect_timeout: Duration,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    connection: Option<MultiplexedConnection>,
    /// Connections made so far: a call that saw one break must not take down the next.
    made: u64,
    /// When making one failed, and how.
    failed: Option<(Instant, RedisError)>,
}

impl Link {
    /// Does not connect.
    pub(crate) fn new(options: &RedisOptions) -> Result<Self> {
        let info = options.connection()?;
        if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
            choose_cryptography();
        }
        let client = Client::open(info).map_err(|error| driver_error(error, "open"))?;
        Ok(Self {
            client,
            timeout: options.timeout,
            connect_timeout: options.connect_timeout,
            held: Mutex::default(),
        })
    }

    /// Waits for the answer to a command.
    pub(crate) async fn ask(&self, command: &Cmd, operation: &'static str) -> Result<Value> {
        self.answer(command, None).await.map_err(|error| driver_error(error, operation))
    }

    /// Waits for the answer of a script, which the command names by its hash.
    pub(crate) async fn run(
        &self,
        script: &Script,
        command: &Cmd,
        operation: &'static str,
    ) -> Result<Value> {
        self.answer(command, Some(script)).await.map_err(|error| driver_error(error, operation))
    }

    async fn answer(&self, command: &Cmd, script: Option<&Script>) -> RedisResult<Value> {
        let work = async {
            match self.attempt(command, script).await {
                // Most often the server had closed it while nobody spoke, and has not got the command.
                // Where it has, asking again counts one admission twice, and changes nothing else.
                Err(error) if error.is_connection_dropped() => self.attempt(command, script).await,
                answer => answer,
            }
        };
        // Each step has its own end. With all of them, and a second attempt, it is this one.
        let most = self.connect_timeout.saturating_add(self.timeout);
        tokio::time::timeout(most, work).await.unwrap_or_else(|_| Err(late()))
    }

    async fn attempt(&self, command: &Cmd, script: Option<&Script>) -> RedisResult<Value> {
        let (mut connection, number) = self.connection().await?;
        let asked = async {
            match command.query_async(&mut connection).await {
                Err(error) if is_unknown_script(&error) => match script {
                    Some(script) => {
                        script.load_async(&mut connection).await?;
                        command.query_async(&mut connection).await
                    }
                    None => Err(error),
                },
                answer => answer,
            }
        };
        let answer =
            tokio::time::timeout(self.timeout, asked).await.unwrap_or_else(|_| Err(late()));
        if answer.as_ref().is_err_and(is_of_the_connection) {
            let mut held = self.held.lock().await;
            if held.made == number {
                held.connection = None;
            }
        }
        answer
    }

    /// The connection and its number. Of calls at once one makes it, and the others wait for that.
    async fn connection(&self) -> RedisResult<(MultiplexedConnection, u64)> {
        let mut held = self.held.lock().await;
        if let Some(connection) = &held.connection {
            return Ok((connection.clone(), held.made));
        }
        if let Some((at, error)) = &held.failed
            && at.elapsed() < PAUSE
        {
            return Err(error.clone());
        }
        // The driver's own timeouts would be beside ours.
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let making = self.client.get_multiplexed_async_connection_with_config(&config);
        let made = tokio::time::timeout(self.connect_timeout, making).await;
        match made.unwrap_or_else(|_| Err(late())) {
            Ok(connection) => {
                held.made += 1;
                held.failed = None;
                held.connection = Some(connection.clone());
                Ok((connection, held.made))
            }
            Err(error) => {
                held.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }
}

/// The driver takes the process's choice, and panics where there is none.
fn choose_cryptography() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // One that is there already is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

fn late() -> RedisError {
    io::Error::from(io::ErrorKind::TimedOut).into()
}

fn is_unknown_script(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

/// Whether another connection may do better: this one is broken or silent, or leads to what was the
/// primary once.
fn is_of_the_connection(error: &RedisError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Io | ErrorKind::Parse | ErrorKind::Server(ServerErrorKind::ReadOnly)
    )
}
