//! Every target answers what real servers sent, and the corpus that fuzzing has kept.

use super::{TARGETS, servers};
use std::path::{Path, PathBuf};

fn kept(kind: &str, target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz").join(kind).join(target);
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn every_target_answers_its_seeds_and_its_corpus() {
    for (name, run) in TARGETS {
        let samples = kept("samples", name);
        assert!(!samples.is_empty(), "{name} has no sample");
        for (path, data) in samples.into_iter().chain(kept("corpus", name)) {
            println!("{}", path.display());
            run(&data);
        }
    }
}

/// What real servers said (`tests/fuzz/record.py`) answers every request, at once and in pieces, alone and beside a second
/// connection: otherwise these samples lead fuzzing no deeper than a login.
#[test]
fn every_driver_understands_its_real_servers() {
    for (driver, target, names) in [
        (&servers::POSTGRES, "postgres", &["postgresql"][..]),
        (&servers::MYSQL, "mysql", &["mysql", "mariadb"]),
        (&servers::FIREBIRD, "firebird", &["firebird"]),
        (&servers::HTTP_1, "http-1", &["nginx", "apache"]),
        (&servers::HTTP_2, "http-2", &["nginx", "apache"]),
        (&servers::RESP, "resp", &["valkey"]),
        (&servers::MEMCACHED, "memcached", &["memcached"]),
    ] {
        let samples = kept("samples", target);
        for name in names {
            let (_, data) = samples.iter().find(|(path, _)| path.ends_with(name)).expect("a recording");
            for (options, cuts) in [(0, [0, 0, 0]), (0, [1, 2, 3]), (servers::POLLED, [7, 1, 0])] {
                let transcript = servers::talk(driver, options, &data[4..], &cuts);
                assert!(transcript.complete, "{target} {name} {options} {cuts:?}: {:?}", transcript.lines);
            }
        }
    }
}
