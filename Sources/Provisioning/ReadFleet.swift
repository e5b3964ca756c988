import Glibc
package import Server
package import Settings
import TLS

/// Reads the files that `fleet` names. Nil if this Larder is alone.
package func readFleet(_ configuration: Configuration) throws(ProvisioningFault) -> FleetTerms? {
    let fleet = configuration.fleet
    guard let url = fleet.redis, let secretFile = fleet.secretFile else { return nil }
    let secretKey = "fleet.secret_file"
    let secret = try firstLine(secretFile, key: secretKey)
    guard secret.count >= FleetSettings.secretBytesMin else {
        throw ProvisioningFault(
            secretKey,
            "\(secretFile): its first line has \(secret.count) bytes and not \(FleetSettings.secretBytesMin) or more",
            hint: "openssl rand -hex 32 makes one")
    }
    let passwordKey = "fleet.redis.password_file"
    let password = try fleet.passwordFile.map { path throws(ProvisioningFault) in
        let line = try firstLine(path, key: passwordKey)
        guard !line.isEmpty else { throw ProvisioningFault(passwordKey, "\(path): its first line is empty") }
        return line
    }
    var authorities = TLSClientOptions.Authorities.system
    if url.isSecured, let path = fleet.authorityFile ?? configuration.tls.caFile {
        authorities = .pem(
            try contents(of: path, key: fleet.authorityFile == nil ? "tls.ca_file" : "fleet.redis.ca_file"))
    }
    do throws(TLSContextError) {
        return try FleetTerms(
            url: url, password: password, authorities: authorities, node: fleet.node ?? machineName(), secret: secret)
    } catch {
        throw ProvisioningFault("fleet.redis.ca_file", "\(error)")
    }
}

/// The name of this machine, as far as a node may be called so.
private func machineName() -> String {
    var name = [CChar](repeating: 0, count: 256)
    guard unsafe gethostname(&name, name.count - 1) == 0 else { return "larder" }
    let text = name.prefix { $0 != 0 }.prefix(64).map { byte -> Character in
        let character = Character(UnicodeScalar(UInt8(bitPattern: byte)))
        return character.isASCII && (character.isLetter || character.isNumber || "-._".contains(character))
            ? character : "-"
    }
    return text.isEmpty ? "larder" : String(text)
}
