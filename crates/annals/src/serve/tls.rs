//! TLS of the server: a certificate chain and its key, read again once they were renewed.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{DEFAULT_VERSIONS, ServerConfig};

use annals_core::{Error, Result};

/// PEM files.
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// What connections are encrypted with.
pub(super) struct Tls {
    files: TlsFiles,
    loaded: Mutex<Loaded>,
}

struct Loaded {
    config: Arc<ServerConfig>,
    stamp: Stamp,
}

/// When both files were changed.
type Stamp = [Option<SystemTime>; 2];

impl Tls {
    pub fn load(files: TlsFiles) -> Result<Tls> {
        let loaded = Mutex::new(Loaded { stamp: files.stamp(), config: files.read()? });
        Ok(Tls { files, loaded })
    }

    /// For the next connection. Files that cannot be used, because one of them is still being replaced, change nothing.
    pub fn current(&self) -> Arc<ServerConfig> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.files.stamp();
        if stamp != loaded.stamp {
            match self.files.read() {
                Ok(config) => *loaded = Loaded { config, stamp },
                Err(error) => tracing::warn!("the previous certificate stays in use: {}", error.chain()),
            }
        }
        loaded.config.clone()
    }
}

impl TlsFiles {
    fn stamp(&self) -> Stamp {
        [&self.certificate, &self.key]
            .map(|path| std::fs::metadata(path).and_then(|found| found.modified()).ok())
    }

    fn read(&self) -> Result<Arc<ServerConfig>> {
        let (certificate, key) = (self.certificate.display(), self.key.display());
        let unusable =
            |what: String| Error::new(what).hint("annals serve --tls-cert chain.pem --tls-key key.pem");
        let bytes = read(&self.certificate)?;
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&bytes)
            .collect::<std::result::Result<_, _>>()
            .map_err(|error| unusable(format!("{certificate} is not a PEM certificate: {error}")))?;
        if chain.is_empty() {
            return Err(unusable(format!("{certificate} contains no certificate")));
        }
        let private = PrivateKeyDer::from_pem_slice(&read(&self.key)?)
            .map_err(|error| unusable(format!("{key} is not a PEM private key: {error}")))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(DEFAULT_VERSIONS)
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, private))
            .map_err(|error| unusable(format!("{certificate} and {key} cannot be used: {error}")))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn read(path: &PathBuf) -> Result<Vec<u8>> {
    let unreadable = |error: io::Error| Error::new(format!("cannot read {}: {error}", path.display()));
    std::fs::read(path).map_err(unreadable)
}
