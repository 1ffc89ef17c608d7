//! Long computations in pieces.

use std::task::Poll;

/// Lets others go first, and lets whoever waits for the computation give it up.
pub(super) async fn pause() {
    let mut paused = false;
    std::future::poll_fn(|context| {
        if paused {
            return Poll::Ready(());
        }
        paused = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
