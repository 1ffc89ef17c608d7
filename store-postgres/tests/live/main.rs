//! The store on a real server.

mod support;

mod archive;
mod conformance;
mod faults;
mod isolation;
mod listen;
mod migrations;
mod pgbouncer;
mod plans;
mod replica;
mod writers;
