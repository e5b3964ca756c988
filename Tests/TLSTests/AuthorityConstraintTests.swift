import TLS
import Testing

@Suite("RFC 5280 §4.2.1.10 Name Constraints")
struct AuthorityConstraintTests {
    struct Row: Sendable {
        var names: [String]
        var addresses: [[UInt8]] = []
        var name: LeafName
        var isPermitted: Bool
    }
    static let v4: LeafName = .address([192, 0, 2, 1])
    static let v6: LeafName = .address(Array(repeating: 0, count: 15) + [1])
    static let rows = [
        Row(names: ["example.org"], name: .dns("example.org"), isPermitted: true),
        Row(names: ["example.org"], name: .dns("a.b.example.org"), isPermitted: true),
        Row(names: ["example.org"], name: .dns("badexample.org"), isPermitted: false),
        Row(names: ["example.org"], name: .dns("org"), isPermitted: false),
        Row(names: ["example.org", "b.test"], name: .dns("b.test"), isPermitted: true),
        Row(names: [".example.org"], name: .dns("a.example.org"), isPermitted: true),
        Row(names: [".example.org"], name: .dns("example.org"), isPermitted: false),
        Row(names: ["Example.ORG"], name: .dns("a.example.org"), isPermitted: true),
        Row(names: ["example.org"], name: v4, isPermitted: false),
        Row(names: ["example.org"], name: v6, isPermitted: false),
        Row(names: ["example.org"], addresses: [[192, 0, 2, 1]], name: v4, isPermitted: true),
        Row(names: ["example.org"], addresses: [[192, 0, 2, 1]], name: .address([192, 0, 2, 2]), isPermitted: false),
        Row(names: ["example.org"], addresses: [[192, 0, 2, 1]], name: v6, isPermitted: false),
        Row(names: [], addresses: [[192, 0, 2, 1]], name: v4, isPermitted: true),
        Row(names: [], addresses: [[192, 0, 2, 1]], name: .dns("a.example.org"), isPermitted: false),
        Row(names: [], name: .dns("a.example.org"), isPermitted: false),
    ]

    /// The issuer of an authority that permits everything, with the constraints of the row. OpenSSL judges its leaf as we do.
    @Test(arguments: rows) func `a name is permitted if OpenSSL accepts its leaf`(_ row: Row) throws {
        let fixture = try AuthorityFixture(permitting: row.names, addresses: row.addresses)
        #expect(fixture.authority.permits(row.name) == row.isPermitted)
        if row.isPermitted {
            let seen = fixture.examine(try fixture.authority.issue(row.name, at: AuthorityFixture.now))
            #expect(seen.isGood, "\(seen.verdict)")
        } else {
            #expect(throws: AuthorityError.notPermitted(row.name)) {
                try fixture.authority.issue(row.name, at: AuthorityFixture.now)
            }
            let verdict = try fixture.verdictOnForbidden(row.name)
            #expect(verdict.contains("permitted subtree violation") || verdict.contains("excluded subtree violation"))
        }
    }

    @Test func `constraints are read as they were written`() throws {
        let constraints = NameConstraints(permitting: ["example.org", "b.test"], addresses: [[192, 0, 2, 1]])
        let root = try RootAuthority(constraints: constraints, at: AuthorityFixture.now, days: 397)
        #expect(root.certificate.constraints == constraints)
        let issued = try root.issue(node: "a", at: AuthorityFixture.now, days: 397)
        #expect(issued.description.constraints == constraints)
        #expect(constraints.permittedAddresses.map(\.text) == ["192.0.2.1/32", "::/128"])
        #expect(constraints.usableAddresses.map(\.text) == ["192.0.2.1/32"])
        #expect(constraints.excludedAddresses.isEmpty)
    }

    @Test func `an authority without constraints permits everything`() throws {
        let fixture = try AuthorityFixture(permitting: nil)
        for name in [LeafName.dns("a.example.org"), Self.v4, Self.v6] {
            #expect(fixture.authority.permits(name))
            #expect(fixture.examine(try fixture.authority.issue(name, at: AuthorityFixture.now)).isGood)
        }
    }

    /// What others put into their certificates, made by OpenSSL: the constraints of a root count, too.
    @Test func `the constraints of every certificate of the path hold`() throws {
        let files = Files()
        let made = shell(
            """
            cd '\(files.directory)' && umask 077
            cat > ext <<'EOF'
            [root]
            basicConstraints=critical,CA:TRUE
            keyUsage=critical,keyCertSign
            nameConstraints=critical,permitted;DNS:example.org,permitted;dirName:subject,permitted;email:example.org
            [int]
            basicConstraints=critical,CA:TRUE,pathlen:0
            keyUsage=critical,keyCertSign
            nameConstraints=critical,excluded;DNS:secret.example.org,excluded;IP:10.0.0.0/255.0.0.0
            [subject]
            O=Somebody
            EOF
            printf '[req]\\ndistinguished_name=d\\n[d]\\n' > cnf
            openssl ecparam -name prime256v1 -genkey -noout -out r.key
            openssl genrsa -out i.key 2048
            openssl req -config cnf -new -key r.key -subj /O=Somebody/CN=r -out r.csr
            openssl x509 -req -in r.csr -signkey r.key -days 3650 -extfile ext -extensions root -out r.pem
            openssl req -config cnf -new -key i.key -subj /O=Somebody/CN=i -out i.csr
            openssl x509 -req -in i.csr -CA r.pem -CAkey r.key -days 3650 -extfile ext -extensions int -out i.pem
            cat r.pem > all.pem; cat i.pem r.pem > path.pem
            date +%s
            """)
        let now = try #require(Int64(made.output.split(separator: "\n").last ?? ""), "\(made.output)")
        let authority = try CertificateAuthority(
            certificateFile: "\(files.directory)/path.pem", keyFile: "\(files.directory)/i.key", at: now)
        #expect(!authority.signsQuickly)
        #expect(authority.permits(.dns("a.example.org")))
        #expect(!authority.permits(.dns("secret.example.org")))
        #expect(!authority.permits(.dns("a.test")))
        #expect(!authority.permits(.address([10, 1, 2, 3])))
        #expect(authority.permits(.address([192, 0, 2, 1])))
        #expect(authority.roots.count == 1)
        #expect(authority.issuerDescription.subject == "CN=i,O=Somebody")
        // The constraint on subjects is met by having none, and RSA signs, too.
        let leaf = try authority.issue(.dns("a.example.org"), at: now)
        let path = files.write("leaf.pem", leaf.pem)
        let verdict = shell(
            "openssl verify -verify_hostname a.example.org -CAfile '\(files.directory)/r.pem' -untrusted '\(path)' '\(path)'"
        )
        #expect(verdict.status == 0, "\(verdict.output)")
    }
}

extension AuthorityFixture {
    /// OpenSSL's verdict on a leaf that the authority's key has signed although its constraints forbid the name.
    fileprivate func verdictOnForbidden(_ name: LeafName) throws -> String {
        let san =
            switch name {
            case .dns(let name): "DNS:\(name)"
            case .address: "IP:\(name.text)"
            }
        return shell(
            """
            cd '\(files.directory)' && umask 077
            printf '[req]\\ndistinguished_name=d\\n[d]\\n' > cnf
            printf 'subjectAltName=critical,\(san)\\nauthorityKeyIdentifier=keyid\\nbasicConstraints=CA:FALSE\\n' > ext
            openssl ecparam -name prime256v1 -genkey -noout -out f.key
            openssl req -config cnf -new -key f.key -subj / -out f.csr
            openssl x509 -req -in f.csr -CA intermediate.pem -CAkey intermediate.key -days 1 -extfile ext -out f.pem
            openssl verify -no_check_time -CAfile root.pem -untrusted intermediate.pem f.pem
            """
        ).output
    }
}
