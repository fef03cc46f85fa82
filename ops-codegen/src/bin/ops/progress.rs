//! A sign of progress, for people who wait.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Progress is shown after this time.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows the current work if it takes long, and if standard error is a terminal; disappears when dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn start(what: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        bar.set_style(ProgressStyle::default_spinner());
        bar.set_message(crate::report::clean(what));
        let later = bar.downgrade();
        std::thread::spawn(move || {
            std::thread::sleep(PATIENCE);
            if let Some(bar) = later.upgrade().filter(|bar| !bar.is_finished()) {
                // It stays hidden if standard error is no terminal.
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.enable_steady_tick(Duration::from_millis(120));
            }
        });
        Self(bar)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
