import EventLoop
import Glibc
package import Interception
import Rules
package import Server
import Settings
import TLS

/// Reads the authority of `intercept.ca`. Returns nil if none is configured.
///
/// - Parameter earlier: the interceptor in use. It is returned if the authority is still the same.
package func readInterceptor(
    _ settings: InterceptSettings, earlier: Interceptor? = nil
) throws(ProvisioningFault) -> Interceptor? {
    guard let certificate = settings.certificateFile, let key = settings.keyFile else { return nil }
    let authority: CertificateAuthority
    do throws(AuthorityError) {
        authority = try CertificateAuthority(certificateFile: certificate, keyFile: key, at: Int64(time(nil)))
    } catch {
        throw ProvisioningFault(
            error.concerns(key) ? "intercept.ca.key" : "intercept.ca.certificate", error.description,
            hint: error.hint)
    }
    for pattern in settings.hosts where !authority.permitsAll(pattern) {
        throw ProvisioningFault(
            "intercept.hosts",
            "\(pattern): the name constraints of the authority in \(certificate) do not permit it",
            hint: "run: larder ca rotate --host \(pattern), or take it out of the list")
    }
    if let earlier, earlier.authority.isSame(as: authority) { return earlier }
    do throws(TLSContextError) {
        return try Interceptor(authority)
    } catch {
        throw ProvisioningFault("intercept.ca", "\(error)")
    }
}

extension CertificateAuthority {
    /// Whether certificates for all hosts of the pattern are within the name constraints.
    fileprivate func permitsAll(_ pattern: HostPattern) -> Bool {
        let name: LeafName? =
            switch pattern {
            // Constraints name whole subtrees, so one name below the suffix stands for all.
            case .any: .dns("any.host.invalid")
            case .below(let suffix): LeafName(host: "any" + suffix)
            case .exact(let host): LeafName(host: host)
            case .address(let address): LeafName(host: "\(address)")
            }
        return name.map { permits($0) } ?? false
    }
}

extension AuthorityError {
    fileprivate func concerns(_ file: String) -> Bool {
        switch self {
        case .fileUnreadable(file, _), .keyNotRegularFile, .keyOwnedByAnother, .keyExposed, .keyUnreadable,
            .keyEncrypted, .keyUnsuitable, .keyOfAnother:
            true
        default: false
        }
    }
}

/// What the operator should know of the authority when Larder starts: one sentence each.
package func remarks(on interceptor: Interceptor) -> [String] {
    let authority = interceptor.authority
    let days = authority.daysLeft(at: Int64(time(nil)))
    return authority.remarks
        + (days <= 30 ? ["the authority of intercept.ca is valid for \(days) more days: run larder ca rotate"] : [])
}
