//! Time, identity and secrets, so that tests decide them.

use uuid::Uuid;

use crate::time::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Now, in UTC.
    fn now(&self) -> Timestamp;
}

/// Makes identities.
pub trait IdGen: Send + Sync {
    /// A UUID that was never made before; later ones sort after earlier ones of the same process.
    fn next(&self) -> Uuid;
}

/// Makes secrets.
pub trait SecretGen: Send + Sync {
    /// Bytes that nobody can foresee.
    fn secret(&self) -> [u8; 32];
}
