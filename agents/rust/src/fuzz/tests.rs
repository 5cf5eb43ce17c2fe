//! Every target answers what real servers sent, and the corpus that fuzzing has kept.

use super::{TARGETS, servers};
use std::path::{Path, PathBuf};

fn kept(kind: &str, target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz").join(kind).join(target);
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// What real servers sent is understood to its end, on a connection that waits and on one that never does.
#[test]
fn every_driver_understands_its_real_servers() {
    let real: [(&str, &servers::Driver, &[&str]); 7] = [
        ("postgres", &servers::POSTGRES, &["postgresql"]),
        ("mysql", &servers::MYSQL, &["mysql", "mariadb"]),
        ("firebird", &servers::FIREBIRD, &["firebird"]),
        ("http-1", &servers::HTTP_1, &["nginx", "apache"]),
        ("http-2", &servers::HTTP_2, &["nginx", "apache"]),
        ("resp", &servers::RESP, &["valkey"]),
        ("memcached", &servers::MEMCACHED, &["memcached"]),
    ];
    for (target, driver, names) in real {
        for name in names {
            let (_, data) = kept("samples", target).into_iter().find(|(path, _)| path.ends_with(name)).unwrap();
            for (options, cuts) in [(0, [0, 0, 0]), (0, [1, 2, 3]), (servers::POLLED, [7, 1, 0])] {
                let transcript = servers::talk(driver, options, &data[4..], &cuts);
                assert!(transcript.complete, "{target} {name}: {transcript:#?}");
            }
        }
    }
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
