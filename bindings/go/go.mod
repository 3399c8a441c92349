module github.com/jitrun/jitrun/bindings/go

go 1.19
