//! One binary of integration tests: each file is a room of them.

mod benign;
mod damage;
mod decode;
mod kinds;
mod pictures;
