//! Core's services over the in-memory ports: what a user of the crate is promised.

mod access;
mod archive;
mod assembly_properties;
mod documents;
mod erase;
mod extraction;
mod files;
mod flows;
mod interleaved;
mod meaning;
mod paused;
mod personas;
mod recall;
mod secrets;
mod sharing;
mod standing;
mod summaries_by_model;
