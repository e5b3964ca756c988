import Access
package import Server
package import Settings
import TLS

/// Reads the files that the configuration names: lists of rules, users, certificates, secrets and PAC files. Blocks.
///
/// - Parameters:
///   - pacFiles: the PAC files in use.
///   - access: that of `configuration`, if its lists have been read.
///   - earlier: the configuration in force; nil at the start.
package func makeSnapshot(
    _ configuration: Configuration, _ pacFiles: PACFiles, access: ReadAccess? = nil, after earlier: Snapshot? = nil
) throws(ProvisioningFault) -> Snapshot {
    var configuration = configuration
    if let access {
        configuration.access = access.settings
    } else {
        configuration.access = try ReadAccess(configuration.access, after: earlier?.configuration.access).settings
    }
    let authentication = try readAuthentication(
        configuration.access.authentication, fetched: earlier.flatMap { fetchedKeys(of: $0, for: configuration) })
    try checkDirectoryAuthorities(configuration)
    for remark in remarks(on: authentication, configuration.access.authentication) { Diagnostics.warning(remark) }
    if let fault = faultOfKeytab(configuration.access.authentication.negotiate) {
        Diagnostics.warning("access.authentication.negotiate.keytab: \(fault)")
    }
    let interceptor = try readInterceptor(configuration.intercept, earlier: earlier?.interceptor)
    if let interceptor, interceptor !== earlier?.interceptor {
        for remark in remarks(on: interceptor) { Diagnostics.warning(remark) }
        let fingerprints = interceptor.authority.roots.map(\.fingerprint).joined(separator: ",")
        if !fingerprints.isEmpty {
            Diagnostics.info("clients trust the authority with setup.sh --ca-sha256 \(fingerprints)")
        }
    }
    let listenerTLS = try readListeners(configuration.listen, earlier: earlier?.listenerTLS ?? [:])
    let secrets = try readSecrets(configuration.credentials)
    let originTLS = try OriginTLSReading(configuration)
    for remark in originTLS.remarks { Diagnostics.warning("\(remark.key): \(remark.message)") }
    let environment = try readProxyEnvironment(for: configuration.routes)
    let scripts = try pacFiles.scripts(for: configuration)
    do throws(TLSContextError) {
        return try Snapshot(
            configuration: configuration, authentication: authentication, interceptor: interceptor,
            pages: readPages(interceptor, configuration.pac),
            secrets: secrets, listenerTLS: listenerTLS, originTLS: originTLS.materials, scripts: scripts,
            environment: environment, after: earlier)
    } catch {
        throw ProvisioningFault("tls", "\(error)")
    }
}
