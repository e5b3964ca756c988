import Credentials
import LogIns

extension LinkLogIn {
    /// - Parameter host: of the peer, as the configuration or the request names it.
    convenience init(
        _ scheme: ChallengeScheme, of use: CredentialUse, host: String, endPointHash: [UInt8]?, desk: TokenDesk
    ) {
        self.init(scheme, of: use.rule, use.secret, host: host, endPointHash: endPointHash, desk: desk)
    }
}
