import Access
import Accounts
import Authentication
import Interception
import LogIns
import Routing
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
    let (materials, remarks) = try Preparation.throwing { preparation throws(ProvisioningFault) in
        let materials = try Materials(configuration, access: access, after: earlier, &preparation)
        return (materials, preparation.remarks)
    }
    for remark in remarks { Diagnostics.warning("\(remark.key): \(remark.message)") }
    if let interceptor = materials.interceptor, interceptor !== earlier?.interceptor {
        let fingerprints = interceptor.authority.roots.map(\.fingerprint).joined(separator: ",")
        if !fingerprints.isEmpty {
            Diagnostics.info("clients trust the authority with setup.sh --ca-sha256 \(fingerprints)")
        }
    }
    var configuration = configuration
    configuration.access = materials.access
    let scripts = try pacFiles.scripts(for: configuration)
    do throws(TLSContextError) {
        return try Snapshot(
            configuration: configuration, authentication: materials.authentication,
            interceptor: materials.interceptor, pages: readPages(materials.interceptor, configuration.pac),
            secrets: materials.secrets, listenerTLS: materials.listenerTLS, originTLS: materials.originTLS,
            scripts: scripts, environment: materials.environment, after: earlier)
    } catch {
        throw ProvisioningFault(configuration.tls.caFile == nil ? "tls" : "tls.ca_file", "\(error)")
    }
}

/// What a snapshot needs besides the configuration and PAC files. What a fault leaves without a value is empty.
struct Materials {
    var access: AccessSettings
    var authentication = AuthenticationMaterial()
    var interceptor: Interceptor?
    var listenerTLS: [ListenerTLSSettings: ListenerTLS] = [:]
    var secrets: SecretShelf
    var originTLS: [TLSMaterial] = []
    var environment = ProxyEnvironment()

    /// Reads. Blocks.
    init(
        _ configuration: Configuration, access: ReadAccess?, after earlier: Snapshot?, _ preparation: inout Preparation
    ) throws(ProvisioningFault) {
        self.access =
            if let access { access.settings } else {
                try ReadAccess(configuration.access, after: earlier?.configuration.access, &preparation).settings
            }
        let settings = configuration.access.authentication
        let faultCount = preparation.faults.count
        authentication = try readAuthentication(
            settings, fetched: earlier.flatMap { fetchedKeys(of: $0, for: configuration) }, &preparation)
        try preparation.attempt { () throws(ProvisioningFault) in try checkDirectoryAuthorities(configuration) }
        if preparation.faults.count == faultCount {
            for remark in remarks(on: authentication, settings) {
                preparation.remark(ProvisioningFault("access.authentication", remark))
            }
        }
        if let fault = faultOfKeytab(settings.negotiate) {
            preparation.remark(ProvisioningFault("access.authentication.negotiate.keytab", fault))
        }
        let interceptor = try preparation.attempt { () throws(ProvisioningFault) in
            try readInterceptor(configuration.intercept, earlier: earlier?.interceptor)
        }
        if let interceptor = interceptor ?? nil {
            self.interceptor = interceptor
            if interceptor !== earlier?.interceptor {
                for remark in remarks(on: interceptor) {
                    preparation.remark(ProvisioningFault("intercept.ca", remark))
                }
            }
        }
        listenerTLS = try readListeners(configuration.listen, earlier: earlier?.listenerTLS ?? [:], &preparation)
        secrets = try readSecrets(configuration.credentials, &preparation)
        try preparation.attempt { () throws(ProvisioningFault) in try checkAuthorities(configuration.tls) }
        originTLS = try readOriginTLS(configuration, &preparation)
        environment =
            try preparation.attempt { () throws(ProvisioningFault) in
                try readProxyEnvironment(for: configuration.routes)
            } ?? ProxyEnvironment()
    }
}

/// Throws what is wrong with the authorities of `tls.ca_file`.
private func checkAuthorities(_ settings: TLSSettings) throws(ProvisioningFault) {
    guard let path = settings.caFile else { return }
    let key = "tls.ca_file"
    var options = TLSClientOptions()
    options.authorities = .pem(try contents(of: path, key: key))
    do throws(TLSContextError) { _ = try TLSClientContext(options) } catch {
        guard case .authoritiesUnreadable(let reason) = error else { throw ProvisioningFault(key, "\(error)") }
        throw ProvisioningFault(key, "\(path): \(reason)")
    }
}
