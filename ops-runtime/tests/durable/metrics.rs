//! What is counted about jobs.
