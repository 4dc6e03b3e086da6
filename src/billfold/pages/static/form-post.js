document.querySelector("main form").submit();
