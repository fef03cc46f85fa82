//! The key of a job, and what an HTTP client makes of it.
