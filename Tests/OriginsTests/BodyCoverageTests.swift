import Credentials
import Origins
import Testing

@Suite("Credentials: what covers the body of a request")
struct BodyCoverageTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let means: CredentialMeans
        var type: String?
        var isEncoded = false
        var isSecure = false
        var challenge: String?
        let coverage: BodyCoverage
    }

    private static let form = "Application/X-WWW-form-urlencoded ; charset=utf-8"
    private static let oauth = CredentialMeans.oauth1(clientKey: "a", .hmacSHA1, realm: nil)
    private static let password = CredentialMeans.password(user: "me", schemes: [.digest], isUnasked: false)
    private static func sigv4(_ service: String) -> CredentialMeans { .sigv4(region: "r", service: service) }

    static let rows = [
        Row(testDescription: "s3 over https", means: sigv4("s3"), isSecure: true, coverage: .nothing),
        Row(testDescription: "s3 over http", means: sigv4("s3"), coverage: .whole),
        Row(testDescription: "another service", means: sigv4("execute-api"), isSecure: true, coverage: .whole),
        Row(testDescription: "OAuth, a form", means: oauth, type: form, isSecure: true, coverage: .whole),
        Row(testDescription: "OAuth, JSON", means: oauth, type: "application/json", coverage: .nothing),
        Row(testDescription: "OAuth, without a type", means: oauth, coverage: .nothing),
        Row(
            testDescription: "OAuth, an encoded form", means: oauth, type: form, isEncoded: true, coverage: .unreadable),
        Row(testDescription: "a digest before its challenge", means: password, coverage: .nothing),
        Row(testDescription: "auth-int", means: password, challenge: "qop=auth-int", coverage: .whole),
        Row(testDescription: "both", means: password, challenge: "qop=\"auth-int, auth\"", coverage: .nothing),
        Row(testDescription: "no qop", means: password, challenge: "opaque=a", coverage: .nothing),
        Row(testDescription: "a token", means: .bearer, type: form, coverage: .nothing),
    ]
    @Test(arguments: rows) func `what is covered`(_ row: Row) throws {
        let challenge = try row.challenge.map {
            let parsed = parseChallenges([Array("Digest realm=a, nonce=b, \($0)".utf8)[...]])
            return try #require(strongestChallenge(parsed, among: [.digest]))
        }
        #expect(
            row.means.bodyCoverage(
                type: row.type.map { Array($0.utf8)[...] }, isEncoded: row.isEncoded, isSecure: row.isSecure,
                answering: challenge) == row.coverage)
    }
}
