//! Reads of the journal that do not hold up a worker.

use tokio::sync::Semaphore;

use crate::Error;

/// How many reads of the journal wait for the disk at once; each takes a thread.
const READS: usize = 16;

/// Runs a read of the journal where it may block.
pub(crate) async fn blocking<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, banister_journal::Error> + Send + 'static,
) -> Result<T, Error> {
    // As many as there are connections, and some that are about to: more would hold a thread and wait all the same.
    static TURNS: Semaphore = Semaphore::const_new(READS);
    #[cfg(test)]
    if crate::simulation::is_running() {
        return Ok(read()?);
    }
    let _turn = TURNS.acquire().await;
    match tokio::task::spawn_blocking(read).await {
        Ok(result) => Ok(result?),
        Err(error) => Err(Error::Task(error.to_string())),
    }
}
