use adaparam_lm::LmError;
use adaparam_runs::RunError;
use thiserror::Error;

/// What can go wrong with a look into a model, told as place, value, rule and next step.
#[derive(Debug, Error)]
pub enum ExploreError {
    /// The model, its files or its text are at fault.
    #[error(transparent)]
    Model(#[from] LmError),
    /// A folder or a setting is at fault.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Nobody can be served at this address.
    #[error(
        "{address}: cannot listen there: {cause}; name another --port, or 0 for any that is free"
    )]
    Listen {
        /// Where it was tried.
        address: String,
        /// What the system says.
        cause: std::io::Error,
    },
}
