//! One test on every store: data directories on SQLite, and, with live tests, on Postgres.

use std::ops::Deref;

use crate::support::Throughline;

/// Makes a test of each function, which takes a [`Store`], for every store.
macro_rules! on_every_store {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::stores::Store::Sqlite).await;
            })+
        }

        #[cfg(feature = "live-tests")]
        mod postgres {
            $(#[tokio::test]
            async fn $test() {
                super::$test(crate::stores::Store::Postgres).await;
            })+
        }
    };
}
pub(crate) use on_every_store;

/// Where data is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Store {
    Sqlite,
    #[cfg(feature = "live-tests")]
    Postgres,
}

/// A data directory on a store of its own.
pub(crate) struct Stored {
    data: Throughline,
    #[cfg(feature = "live-tests")]
    database: Option<postgres::Database>,
}

impl Deref for Stored {
    type Target = Throughline;

    fn deref(&self) -> &Throughline {
        &self.data
    }
}

impl Store {
    pub(crate) async fn fresh(self) -> Stored {
        let data = Throughline::new();
        match self {
            Self::Sqlite => Stored {
                data,
                #[cfg(feature = "live-tests")]
                database: None,
            },
            #[cfg(feature = "live-tests")]
            Self::Postgres => {
                let database = postgres::Database::of(&data).await;
                Stored { data, database: Some(database) }
            }
        }
    }
}

impl Stored {
    /// Whether a text is anywhere in the store.
    pub(crate) async fn holds(&self, text: &str) -> bool {
        #[cfg(feature = "live-tests")]
        if let Some(database) = &self.database {
            return database.holds(text).await;
        }
        let files = [self.database(), self.database().with_extension("db-wal")];
        let bytes = files.iter().filter_map(|file| std::fs::read(file).ok());
        bytes.into_iter().any(|bytes| String::from_utf8_lossy(&bytes).contains(text))
    }

    /// Copies the store as an operator does, while nothing runs on it.
    pub(crate) async fn backup(&self) {
        #[cfg(feature = "live-tests")]
        if let Some(database) = &self.database {
            return database.copy_to("before").await;
        }
        self.json(&["backup", "before.db"]);
    }

    /// Puts the copy in its place: so many entries of the ledger are done again before it is served.
    pub(crate) async fn restore(&self, erasures: u64) {
        #[cfg(feature = "live-tests")]
        if let Some(database) = &self.database {
            return database.copy_from("before").await;
        }
        let restored = self.json(&["restore", "before.db", "--replace"]);
        assert_eq!(restored["erasures"], erasures, "{restored}");
    }
}

#[cfg(feature = "live-tests")]
mod postgres {
    use std::sync::atomic::{AtomicU32, Ordering};

    use sqlx::postgres::PgConnectOptions;
    use sqlx::{AssertSqlSafe, ConnectOptions, Executor};

    use crate::combinations::{make_database, server};
    use crate::erasing::rows_with;
    use crate::support::Throughline;

    /// Of a data directory. The ledger of erasures is a database apart, which no backup has.
    pub(super) struct Database {
        direct: String,
    }

    impl Database {
        pub(super) async fn of(data: &Throughline) -> Self {
            static MADE: AtomicU32 = AtomicU32::new(0);
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            let made = tokio::task::spawn_blocking(move || {
                ["", "_ledger"].map(|part| make_database(&format!("stored{number}{part}")))
            });
            let [[url, direct], [_, ledger]] = made.await.unwrap();
            let settings = format!(
                "store = \"postgres\"\npostgres.url = {url:?}\npostgres.direct_url = {direct:?}\n\
                 postgres.erasures_url = {ledger:?}\n"
            );
            data.file("throughline.toml", settings);
            Self { direct }
        }

        pub(super) async fn holds(&self, text: &str) -> bool {
            let (direct, text) = (self.direct.clone(), text.to_owned());
            let rows = tokio::task::spawn_blocking(move || rows_with(&direct, &text));
            !rows.await.unwrap().is_empty()
        }

        pub(super) async fn copy_to(&self, copy: &str) {
            let name = self.name();
            copied(&name, &format!("{name}_{copy}")).await;
        }

        pub(super) async fn copy_from(&self, copy: &str) {
            let name = self.name();
            copied(&format!("{name}_{copy}"), &name).await;
        }

        fn name(&self) -> String {
            let options: PgConnectOptions = self.direct.parse().unwrap();
            options.get_database().unwrap().to_owned()
        }
    }

    async fn copied(from: &str, to: &str) {
        let admin: PgConnectOptions = server("THROUGHLINE_TEST_POSTGRES").parse().unwrap();
        let mut connection = admin.connect().await.unwrap();
        for statement in [
            format!("DROP DATABASE IF EXISTS {to} WITH (FORCE)"),
            format!("CREATE DATABASE {to} TEMPLATE {from}"),
        ] {
            connection.execute(AssertSqlSafe(statement)).await.unwrap();
        }
    }
}
