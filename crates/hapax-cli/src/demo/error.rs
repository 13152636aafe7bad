use std::io;

use tokio::task::JoinError;

use super::process::ProcessError;

/// Why there is nothing to see, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    #[error("cannot use the temporary directory; set TMPDIR to one that can be written")]
    Directory(#[source] io::Error),
    #[error("the gateway does not run")]
    Gateway(#[from] ProcessError),
    #[error("the payments API of the demo cannot serve on 127.0.0.1")]
    Api(#[source] io::Error),
    #[error("the page of the demo cannot be served on 127.0.0.1")]
    Page(#[source] io::Error),
    #[error("cannot find the file of this program, which it starts again as the gateway")]
    Program(#[source] io::Error),
    #[error("there is no free port on 127.0.0.1")]
    Port,
    #[error("a customer of the demo ended early")]
    Customer(#[source] JoinError),
    #[error("the operating system refused what a server needs")]
    Runtime(#[source] io::Error),
    #[error("cannot write the result")]
    Print(#[source] io::Error),
    #[error("interrupted; nothing is left behind")]
    Interrupted,
}
