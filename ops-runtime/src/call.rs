//! The call protocol: operations across processes.
