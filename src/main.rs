//! The `prep` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    imgprep::cli::main()
}
