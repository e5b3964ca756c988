import ClientSetup
import Glibc
import Interception
import Message
import Rules
import Server
import Settings
import TLS

/// Makes the pages that the proxy port answers: with the roots of the authority, if there is one that clients could trust.
func readPages(_ interceptor: Interceptor?, _ settings: PACSettings) -> Pages {
    let direct = DirectDestinations(settings.direct)
    guard let roots = interceptor?.authority.roots, !roots.isEmpty else { return Pages(direct: direct) }
    return Pages(
        roots: roots.map(\.der), systemRoots: readSystemRoots(), direct: direct,
        now: WallTime(secondsSinceEpoch: Int64(time(nil))), sha1: { Digest.sha1($0) })
}

extension DirectDestinations {
    init(_ written: [DirectDestination]) {
        self.init()
        for destination in written {
            switch destination {
            case .host(.exact(let name)): hosts.append(name)
            case .host(.below(let suffix)): suffixes.append(suffix)
            case .host(.address(let address)): hosts.append("\(address)")
            case .network(let range): networks.append(Network(range.first, prefixLength: range.prefixLength))
            case .host(.any): preconditionFailure("it is no value of pac.direct")
            }
        }
    }
}

/// Where distributions keep the roots that they trust, in one file.
private let systemBundles = [
    "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  // Fedora
    "/etc/ssl/ca-bundle.pem",  // openSUSE
    "/etc/ssl/cert.pem",  // Alpine
]

/// The certificates that this machine trusts, in DER. Empty if it has no bundle.
private func readSystemRoots() -> [[UInt8]] {
    for path in systemBundles {
        do throws(FileError) {
            return PEMCertificates.read(try readFile(path))
        } catch {
            continue  // another distribution's
        }
    }
    return []
}
