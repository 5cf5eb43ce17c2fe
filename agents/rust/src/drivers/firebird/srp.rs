//! srp: user, password and the server's challenge -> a proof and a session key, as Firebird's Srp plugins compute them.
//!
//! SRP-6a over a group of 1024 bits with SHA-1, with three habits of Firebird's own: numbers are hashed without leading
//! zeros, the exponent is reduced by the modulus, and the proof takes H(N) to the power of H(g) where others take ⊕. The
//! plugin's name says which hash the proof itself is made with.

use crate::failure::{Failure, Result};
use openssl::bn::{BigNum, BigNumContext};
use openssl::error::ErrorStack;
use openssl::hash::{MessageDigest, hash};
use openssl::sha::sha1;

const PRIME: &str = "E67D2E994B2F900C3F41F08F5BB2627ED0D49EE1FE767A52EFCD565CD6E768812C3E1E9CE8F0A8BEA6CB13CD29DDEBF7\
A96D4A93B55D488DF099A15C89DCB0640738EB2CBDD9A8F7BAB561AB1B0DC1C6CDABF303264A08D1BCA932D1F1EE428B619D970F342ABA9A65793B8B\
2F041AE5364350C16F735F56ECBCA87BD57B29E7";
const KEY_BYTES: usize = 128;

/// The plugins whose proof can be made, the best first.
pub const PLUGINS: [&str; 5] = ["Srp256", "Srp512", "Srp384", "Srp224", "Srp"];

/// One login's secrets.
pub struct Srp {
    private: BigNum,
    public: BigNum,
    prime: BigNum,
}

/// What answers the server's challenge.
pub struct Answer {
    /// Hexadecimal, as it is sent.
    pub proof: String,
    pub session_key: [u8; 20],
}

impl Srp {
    pub fn new() -> Result<Srp> {
        let mut random = [0; KEY_BYTES];
        openssl::rand::rand_bytes(&mut random).map_err(failed)?;
        Srp::with_private(&random)
    }

    fn with_private(bytes: &[u8]) -> Result<Srp> {
        let make = || -> std::result::Result<Srp, ErrorStack> {
            let mut context = BigNumContext::new()?;
            let prime = BigNum::from_hex_str(PRIME)?;
            let mut private = BigNum::new()?;
            private.nnmod(&*BigNum::from_slice(bytes)?, &prime, &mut context)?;
            let mut public = BigNum::new()?;
            public.mod_exp(&*BigNum::from_u32(2)?, &private, &prime, &mut context)?;
            Ok(Srp { private, public, prime })
        };
        make().map_err(failed)
    }

    /// Our public key, as it is sent.
    pub fn public(&self) -> Result<String> {
        text(&self.public).map_err(failed)
    }

    /// `user` as the server knows it (upper case unless quoted); `salt` and `server_public` as it sent them.
    pub fn answer(&self, plugin: &str, user: &str, password: &str, salt: &[u8], server_public: &str) -> Result<Answer> {
        let digest = match plugin {
            "Srp" => MessageDigest::sha1(),
            "Srp224" => MessageDigest::sha224(),
            "Srp384" => MessageDigest::sha384(),
            "Srp512" => MessageDigest::sha512(),
            _ => MessageDigest::sha256(),
        };
        let server_public = BigNum::from_hex_str(server_public)
            .map_err(|_| Failure::connect("the server's challenge is no number: it can't be answered"))?;
        self.compute(digest, user, password, salt, &server_public).map_err(failed)
    }

    fn compute(
        &self,
        digest: MessageDigest,
        user: &str,
        password: &str,
        salt: &[u8],
        server_public: &BigNum,
    ) -> std::result::Result<Answer, ErrorStack> {
        let (prime, mut context) = (&self.prime, BigNumContext::new()?);
        let generator = BigNum::from_u32(2)?;
        let padded = [vec![0; KEY_BYTES - 1], vec![2]].concat();
        let k = BigNum::from_slice(&sha1(&[prime.to_vec(), padded].concat()))?;
        let u = BigNum::from_slice(&sha1(&[self.public.to_vec(), server_public.to_vec()].concat()))?;
        let inner = sha1(format!("{user}:{password}").as_bytes());
        let x = BigNum::from_slice(&sha1(&[salt, &inner].concat()))?;

        // S = (B − k·gˣ) ^ (a + u·x)
        let (mut gx, mut kgx, mut base) = (BigNum::new()?, BigNum::new()?, BigNum::new()?);
        gx.mod_exp(&generator, &x, prime, &mut context)?;
        kgx.mod_mul(&k, &gx, prime, &mut context)?;
        base.mod_sub(server_public, &kgx, prime, &mut context)?;
        let (mut ux, mut exponent, mut secret) = (BigNum::new()?, BigNum::new()?, BigNum::new()?);
        ux.mod_mul(&u, &x, prime, &mut context)?;
        exponent.mod_add(&self.private, &ux, prime, &mut context)?;
        secret.mod_exp(&base, &exponent, prime, &mut context)?;
        let session_key = sha1(&secret.to_vec());

        // M = H(H(N)^H(g), H(user), salt, A, B, K)
        let hash_of_prime = BigNum::from_slice(&sha1(&prime.to_vec()))?;
        let hash_of_generator = BigNum::from_slice(&sha1(&[2]))?;
        let mut group = BigNum::new()?;
        group.mod_exp(&hash_of_prime, &hash_of_generator, prime, &mut context)?;
        let name = BigNum::from_slice(&sha1(user.as_bytes()))?;
        let parts = [
            &group.to_vec(),
            &name.to_vec(),
            salt,
            &self.public.to_vec(),
            &server_public.to_vec(),
            session_key.as_slice(),
        ];
        let proof = hash(digest, &parts.concat())?;
        Ok(Answer { proof: text(&BigNum::from_slice(&proof)?)?, session_key })
    }
}

/// Upper-case hexadecimal without leading zeros.
fn text(number: &BigNum) -> std::result::Result<String, ErrorStack> {
    let digits = number.to_hex_str()?.to_uppercase();
    let stripped = digits.trim_start_matches('0');
    Ok(if stripped.is_empty() { "0".to_string() } else { stripped.to_string() })
}

fn failed(error: ErrorStack) -> Failure {
    Failure::internal(format!("SRP failed: {error}"))
}
