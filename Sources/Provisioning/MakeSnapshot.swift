import Access
import Routing
package import Server
package import Settings
import TLS

/// Why a configuration cannot be used, although each of its values is valid.
package struct SnapshotFailure: Error, CustomStringConvertible {
    package var description: String
}

/// Reads the files that the configuration names: users, certificates, secrets and PAC files.
///
/// - Parameters:
///   - pacFiles: the PAC files in use.
///   - earlier: the configuration in force; nil at the start.
package func makeSnapshot(
    _ configuration: Configuration, _ pacFiles: PACFiles, after earlier: Snapshot? = nil
) throws(SnapshotFailure) -> Snapshot {
    var users: HtpasswdFile?
    if let authentication = configuration.access.authentication { users = try readUsers(authentication.usersFile) }
    let interceptor: Interceptor?
    do throws(InterceptionProblem) {
        interceptor = try readInterceptor(configuration.intercept, earlier: earlier?.interceptor)
    } catch {
        throw SnapshotFailure(description: "\(error.key): \(error.message)" + (error.hint.map { " (\($0))" } ?? ""))
    }
    if let interceptor, interceptor !== earlier?.interceptor {
        for remark in remarks(on: interceptor) { Diagnostics.warning(remark) }
        let fingerprints = interceptor.authority.roots.map(\.fingerprint).joined(separator: ",")
        if !fingerprints.isEmpty {
            Diagnostics.info("clients trust the authority with setup.sh --ca-sha256 \(fingerprints)")
        }
    }
    let secrets = try readSecrets(configuration.credentials)
    let originTLS: OriginTLSReading
    do throws(OriginTLSProblem) { originTLS = try OriginTLSReading(configuration) } catch {
        throw SnapshotFailure(description: "\(error.key): \(error.message)" + (error.hint.map { " (\($0))" } ?? ""))
    }
    for remark in originTLS.remarks { Diagnostics.warning("\(remark.key): \(remark.message)") }
    let environment = try readProxyEnvironment(for: configuration.routes)
    let scripts: [String: PACScript]
    do throws(PACProblem) { scripts = try pacFiles.scripts(for: configuration) } catch {
        throw SnapshotFailure(description: "\(error.key): \(error.message)")
    }
    do throws(TLSContextError) {
        return try Snapshot(
            configuration: configuration, users: users, interceptor: interceptor, pages: readPages(interceptor),
            secrets: secrets, originTLS: originTLS.materials, scripts: scripts, environment: environment, after: earlier
        )
    } catch {
        throw SnapshotFailure(description: "tls: \(error)")
    }
}

private func readUsers(_ path: String) throws(SnapshotFailure) -> HtpasswdFile {
    do throws(FileError) {
        let (file, errors) = HtpasswdFile.parse(try readFile(path))
        if let first = errors.first { throw FileError(path: "\(path):\(first)", code: 0) }
        return file
    } catch {
        throw SnapshotFailure(
            description: "access.authentication.basic.users: \(error.code == 0 ? error.path : error.text)")
    }
}
