larderMain()
