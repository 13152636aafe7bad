//! An authority of one's own: certificates for servers and their clients, as tests need them.

use std::io;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};

use crate::error::ServiceError;

/// Somebody who signs certificates.
#[derive(Debug)]
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
#[derive(Debug, Clone)]
pub struct Certified {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl Authority {
    /// A new one, whom nobody trusts yet.
    pub fn new(name: &str) -> Result<Self, ServiceError> {
        let mut params = params(&[], name)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?.pem();
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// What those who trust it have, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A certificate for a server of these names.
    pub fn server(&self, names: &[&str]) -> Result<Certified, ServiceError> {
        let mut params = params(names, "server")?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&params)
    }

    /// A certificate for a client who calls itself so.
    pub fn client(&self, name: &str) -> Result<Certified, ServiceError> {
        let mut params = params(&[], name)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Result<Certified, ServiceError> {
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(failed)?.pem();
        Ok(Certified { certificate, key: key.serialize_pem() })
    }
}

fn params(names: &[&str], own: &str) -> Result<CertificateParams, ServiceError> {
    let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, own);
    Ok(params)
}

fn failed(error: rcgen::Error) -> ServiceError {
    ServiceError::io("make a certificate")(io::Error::other(error))
}
