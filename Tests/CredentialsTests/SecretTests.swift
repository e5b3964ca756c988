import Credentials
import Testing

@Suite("Secrets")
struct SecretTests {
    @Test func `no way of printing shows one`() {
        let secret = Secret("hunter2")
        var dumped = ""
        dump((name: "x", secret: secret), to: &dumped)
        for shown in ["\(secret)", String(describing: secret), String(reflecting: secret), "\([secret])", dumped] {
            #expect(shown.contains("(secret)") || shown == dumped)
            #expect(!shown.contains("hunter2") && !shown.contains("104"), "\(shown)")
        }
        #expect(secret.bytes == Array("hunter2".utf8))
    }

    @Test func `two are equal if all their bytes are`() {
        #expect(Secret("abc") == Secret("abc"))
        #expect(Secret("abc") != Secret("abd"))
        #expect(Secret("abc") != Secret("xbc"))
        #expect(Secret("abc") != Secret("abcd"))
        #expect(Secret("") == Secret(""))
    }
}
