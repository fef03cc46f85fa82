//! A registry before agents: what each caller may take, what they get of large results, and what is written down.

mod audit;
mod caller;
mod large;
mod limits;
mod size;

pub use audit::{Approval, AuditEntry, AuditInputs, AuditLog, AuditOptions, AuditRecord, AuditSink};
pub use caller::CallerId;
pub use large::{Fitted, Part, ReadAt, ResultLimits, Results, Unit};
pub use limits::{CallPermit, CallerLimits, Limiter, Rate};
