//! When a command that runs on is to end.

/// Completes at Ctrl-C, and on systems that have it at SIGTERM. SIGTERM is heard from this call on, and not only once the
/// future is polled: a process that was just started ends as well as any other.
pub(super) fn stop_signal() -> impl Future<Output = ()> + Send + 'static {
    #[cfg(unix)]
    let terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            // Without signal handling the process runs until it is killed.
            std::future::pending::<()>().await;
        }
    };
    async move {
        #[cfg(unix)]
        {
            let Ok(mut terminated) = terminated else {
                return interrupted.await;
            };
            tokio::select! {
                () = interrupted => {}
                _ = terminated.recv() => {}
            }
        }
        #[cfg(not(unix))]
        interrupted.await;
    }
}
