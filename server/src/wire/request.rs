//! The id of the request at work, which its failures name.

tokio::task_local! {
    static CURRENT: String;
}

/// The id of the request at work; empty outside of one.
pub(crate) fn request_id() -> String {
    CURRENT.try_with(Clone::clone).unwrap_or_default()
}

/// Works as the request of this id.
pub(crate) async fn within<T>(id: String, work: impl Future<Output = T>) -> T {
    CURRENT.scope(id, work).await
}
